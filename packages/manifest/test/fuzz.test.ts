import { describeFuzz, type FuzzTarget } from '@svc/testkit/fuzz'
import { ManifestError } from '../src/errors.ts'
import { parseManifest } from '../src/manifest.ts'
import { parseModelConfig } from '../src/model-config.ts'
import { parseIndex } from '../src/model-index.ts'
import { parseRecord } from '../src/record.ts'
import { vectors } from './vectors.ts'

const DIGEST = `sha256:${'0'.repeat(64)}`
const dictionary = [
  '"schemaVersion":1',
  '"artifactType":"model"',
  '"files":[',
  '"annotations":{',
  '"digest":',
  `"${DIGEST}"`,
  '"size":',
  '"bt":{"merkleRoot":',
  '"kind":"weights.gguf"',
  '"name":"',
  '../',
  'manifest/',
  '"part":',
  '\\u0000',
  '\\ud800',
  '"__proto__":',
  '1.5',
  '-1',
  'null',
  '9007199254740992',
  '"members":[',
  '"quant":"q4_0"',
  '"torrent":{',
  'btmh:1220',
  '{',
  '}',
  '[',
  ']',
  ','
]
const target = (name: string, seeds: readonly string[], parse: (bytes: Uint8Array) => unknown): FuzzTarget => ({
  name,
  seeds,
  dictionary,
  // unknown fields are allowed, and would make each document an outcome of its own.
  run: (input) => String(Math.min(Object.keys(parse(input) as object).length, 8)),
  expected: (error) => (error instanceof ManifestError ? `${error.code} ${error.reason}` : undefined)
})

describeFuzz([
  target(
    'manifest',
    vectors.manifests.map(({ bytes }) => bytes),
    parseManifest
  ),
  target(
    'model-index',
    vectors.indexes.map(({ bytes }) => bytes),
    parseIndex
  ),
  target(
    'distribution-record',
    vectors.manifests.map(({ record }) => record),
    parseRecord
  ),
  target(
    'model-config',
    vectors.modelConfigs.map(({ bytes }) => bytes),
    parseModelConfig
  )
])
