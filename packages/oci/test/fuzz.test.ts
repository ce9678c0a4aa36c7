import { describeFuzz } from '@svc/testkit/fuzz'
import { parseOciIndex, parseOciManifest } from '../src/document.ts'
import { OciError } from '../src/errors.ts'
import { MANIFEST_TYPE } from '../src/media-types.ts'
import { tryParseRegistryReference } from '../src/reference.ts'
import { parseChallenge } from '../src/registry-login.ts'
import { readPaxRecords, readTarHeader, tarHeader } from '../src/tar-header.ts'
import { chooseManifest, modelOf } from '../src/unpack.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`
const LAYER = { mediaType: 'x/y', digest: DIGEST, size: 1, annotations: { 'org.opencontainers.image.title': 'a' } }
const expected = (error: unknown): string | undefined => (error instanceof OciError ? error.code : undefined)
const text = (input: Uint8Array): string => Buffer.from(input).toString('utf8')

describeFuzz([
  {
    name: 'oci-manifest',
    seeds: [
      JSON.stringify({ schemaVersion: 2, config: LAYER, layers: [LAYER], annotations: { 'svc.manifest': DIGEST } })
    ],
    dictionary: [
      '"layers":',
      '"size":',
      '-1',
      '1e400',
      DIGEST,
      '__proto__',
      '"annotations":{',
      'null',
      '[',
      'tar+gzip'
    ],
    run: (input) => `${Math.min(modelOf(parseOciManifest(input)).files.length, 4)}`,
    expected
  },
  {
    name: 'oci-index',
    seeds: [JSON.stringify({ schemaVersion: 2, manifests: [{ ...LAYER, mediaType: MANIFEST_TYPE }] })],
    dictionary: [
      '"manifests":',
      'org.opencontainers.image.ref.name',
      DIGEST,
      '"mediaType":',
      'null',
      '9007199254740993'
    ],
    run: (input) => chooseManifest(parseOciIndex(input), undefined).mediaType.slice(0, 20),
    expected
  },
  {
    name: 'registry-reference',
    seeds: ['registry.example:5000/team/model:tag', `[::1]:5000/a@${DIGEST}`, 'localhost/a'],
    dictionary: [':', '@', '/', '..', '[', ']', '\0', '%00', 'A', '//', DIGEST],
    run: (input) => (tryParseRegistryReference(text(input)) === undefined ? 'none' : 'some'),
    expected
  },
  {
    name: 'www-authenticate',
    seeds: [
      'Bearer realm="https://a/token",service="s",scope="repository:a:pull"',
      'Basic realm="x"',
      'Negotiate, Basic'
    ],
    dictionary: ['"', '\\', 'realm=', ',', 'Bearer ', 'Basic', '=', ' '.repeat(500)],
    run: (input) => parseChallenge(text(input))?.scheme ?? 'none',
    expected
  },
  {
    name: 'tar-header',
    seeds: [tarHeader('a', 5), tarHeader('b'.repeat(200), 2 ** 40)],
    dictionary: ['ustar\0', '\x80', '77777777777', '12 path=a\n', '18 size=9999999999\n', '\0\0\0\0'],
    maxBytes: 2048,
    run: (input) => {
      const block = Buffer.alloc(512)
      Buffer.from(input).copy(block)
      const entry = readTarHeader(block)
      const pax = readPaxRecords(Buffer.from(input).subarray(512))
      return `${entry === 'bad' ? 'bad' : entry?.type} ${pax === undefined ? 'bad' : Object.keys(pax).join()}`
    },
    expected
  }
])
