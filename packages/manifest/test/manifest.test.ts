import type { Sha256Digest } from '@svc/ref'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalBytes, MAX_DOCUMENT_BYTES } from '../src/canonical.ts'
import { parseManifest, parseSealedManifest, sealManifest } from '../src/manifest.ts'
import type { Manifest, ManifestFile } from '../src/types.ts'
import { errorOf } from './manifest-error.ts'
import { toBytes, toText, vectors } from './vectors.ts'

describe.each(vectors.manifests)('vector: $name', ({ files, annotations, bytes, digest }) => {
  test('seals to the golden bytes, in any order of files and annotations', () => {
    const sealed = sealManifest(files, annotations)
    expect([toText(sealed.bytes), sealed.digest]).toEqual([bytes, digest])
    fc.assert(
      fc.property(fc.shuffledSubarray([...files], { minLength: files.length }), (shuffled) => {
        const turned = Object.fromEntries(Object.entries(annotations).reverse())
        expect(sealManifest(shuffled, turned)).toEqual(sealed)
      }),
      { numRuns: 20 }
    )
  })

  test('reads back', () => {
    expect(parseSealedManifest(toBytes(bytes))).toEqual(sealManifest(files, annotations))
  })
})

const digest = (byte: number): Sha256Digest => `sha256:${byte.toString(16).padStart(2, '0').repeat(32)}` as Sha256Digest
const EMPTY = 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' as Sha256Digest
let count = 0
function entry(change: Partial<ManifestFile> & { readonly name: string }): ManifestFile {
  count = (count % 100) + 1
  return { kind: 'weights.gguf', digest: digest(count), size: 1, bt: { merkleRoot: digest(count + 100) }, ...change }
}
const config = entry({ kind: 'config', name: 'modelconfig.json' })
const weights = entry({ name: 'x-q4_0.gguf' })
function without(file: ManifestFile, key: keyof ManifestFile): ManifestFile {
  const { [key]: _gone, ...rest } = file
  return rest as ManifestFile
}

describe('refused when sealed, and when read', () => {
  const cases: readonly [reason: string, files: readonly unknown[], annotations?: unknown][] = [
    ['config-count', [weights]],
    ['config-count', []],
    ['config-count', [config, config]],
    ['file-name', [entry({ kind: 'config', name: 'config.json' }), weights]],
    ['file-name', [config, entry({ kind: 'tokenizer', name: 'tok.tar' })]],
    ['file-name', [config, entry({ kind: 'adapter', name: 'lora/adapter.zip' })]],
    [
      'tokenizer-count',
      [config, entry({ kind: 'tokenizer', name: 'tokenizer.tar' }), entry({ kind: 'tokenizer', name: 'tokenizer.tar' })]
    ],
    [
      'chat-template-count',
      [config, entry({ kind: 'chat-template', name: 'a' }), entry({ kind: 'chat-template', name: 'b' })]
    ],
    ['role', [config, entry({ kind: 'weights.aux', name: 'a' })]],
    ['role', [config, entry({ kind: 'weights.aux', name: 'a', role: 'model' })]],
    ['role', [config, entry({ kind: 'code', name: 'a.py', role: 'imatrix' })]],
    ['kind', [config, { ...weights, kind: 'weights.bin' }]],
    ['kind', [config, { ...weights, kind: 'toString' }]],
    ['name-duplicate', [config, weights, { ...weights, digest: digest(200) }]],
    ['name-duplicate', [config, entry({ name: 'e\u0301' }), entry({ name: '\u00e9' })]],
    ['name-conflict', [config, entry({ name: 'a' }), entry({ name: 'a/b' })]],
    ['digest-conflict', [config, weights, { ...weights, name: 'y', size: 2 }]],
    ['digest-conflict', [config, weights, { ...weights, name: 'y', bt: { merkleRoot: digest(7) } }]],
    ['digest-conflict', [config, { ...without(weights, 'bt'), size: 0 }]],
    ['digest-conflict', [config, { ...weights, digest: EMPTY }]],
    ['merkle-root', [config, without(weights, 'bt')]],
    ['merkle-root', [config, { ...weights, bt: {} }]],
    ['merkle-root', [config, { ...weights, bt: { merkleRoot: 'x' } }]],
    ['merkle-root', [config, { ...weights, bt: { merkleRoot: digest(0) } }]],
    ['merkle-root', [config, { ...weights, digest: EMPTY, size: 0 }]],
    ['total-size', [config, { ...weights, size: Number.MAX_SAFE_INTEGER }]],
    ['field', [config, without(weights, 'size')]],
    ['field', [config, { ...weights, size: -1 }]],
    ['field', [config, { ...weights, size: '1' }]],
    ['field', [config, without(weights, 'digest')]],
    ['field', [config, { ...weights, digest: digest(171).toUpperCase() }]],
    ['field', [config, without(weights, 'name')]],
    ['field', [config, { ...weights, part: '1' }]],
    ['field', [config, { ...weights, part: -1 }]],
    ['field', [config, { ...weights, variant: '' }]],
    ['field', [config, { ...weights, runtime: 1 }]],
    ['field', [config, weights], { a: 1 }],
    ...[
      '/a',
      'a/',
      'a//b',
      '.',
      '..',
      'a/../b',
      './a',
      'a\\b',
      'a\0',
      'a\n',
      'a\u007f',
      'manifest',
      'manifest/x',
      'a'.repeat(256),
      `${'ab/'.repeat(32)}a`,
      `${`${'a'.repeat(200)}/`.repeat(6)}a`
    ].map((name): [string, unknown[]] => ['path', [config, entry({ name })]])
  ]
  test.each(cases)('%s: %j', (reason, files, annotations = {}) => {
    expect(errorOf(() => sealManifest(files as ManifestFile[], annotations as Record<string, string>))).toBe(
      `E_INVALID ${reason}`
    )
    const bytes = canonicalBytes({ schemaVersion: 1, artifactType: 'model', files, annotations })
    expect(errorOf(() => parseManifest(bytes))).toBe(`E_CORRUPTION ${reason}`)
  })

  test('a builder refuses values that no document can have', () => {
    expect(errorOf(() => sealManifest([config, { ...weights, size: 1.5 }]))).toBe('E_INVALID field')
    expect(errorOf(() => sealManifest([config, entry({ name: '\ud800' })]))).toBe('E_INVALID path')
    expect(errorOf(() => sealManifest([config, weights], { a: '\ud800' }))).toBe('E_INVALID value')
    expect(errorOf(() => sealManifest([config, weights], { a: 'x'.repeat(MAX_DOCUMENT_BYTES) }))).toBe(
      'E_INVALID too-large'
    )
  })
})

test('valid names', () => {
  const names = ['manifests', 'Manifest/x', 'a/manifest', '...', '.a', 'a b', 'ü😀', '-', 'a'.repeat(255)]
  expect(sealManifest([config, ...names.map((name) => entry({ name }))]).document.files).toHaveLength(names.length + 1)
})

describe('reading', () => {
  const { document } = sealManifest([
    config,
    weights,
    entry({ name: 'a.gguf' }),
    entry({ name: 'b', kind: 'weights.safetensors' })
  ])
  const read = (change: object): string => errorOf(() => parseManifest(canonicalBytes({ ...document, ...change })))

  test('files in another order are invalid', () => {
    expect(document.files.map((file) => file.name)).toEqual(['modelconfig.json', 'a.gguf', 'b', 'x-q4_0.gguf'])
    expect(read({ files: [...document.files].reverse() })).toBe('E_CORRUPTION file-order')
    expect(read({ files: [document.files[0], document.files[2], document.files[1], document.files[3]] })).toBe(
      'E_CORRUPTION file-order'
    )
  })

  test.each([
    { schemaVersion: 2 },
    { artifactType: 'model-index' },
    { files: {} },
    { files: [1] },
    { files: [[]] },
    { annotations: [] },
    { annotations: 'x' }
  ])('refuses %j', (change) => {
    expect(read(change)).toBe('E_CORRUPTION field')
  })

  test('a document that is not an object', () => {
    for (const text of ['[]', '1', '"x"', 'true'])
      expect(errorOf(() => parseManifest(toBytes(text)))).toBe('E_CORRUPTION field')
  })

  test('unknown fields are kept, wherever they stand', () => {
    const files = document.files.map((file) => ({ ...file, extra: { deep: [1, true] } }))
    const bytes = canonicalBytes({ ...document, files, zzz: 'new' })
    const sealed = parseSealedManifest(bytes)
    expect(sealed.document).toEqual({ ...document, files, zzz: 'new' })
    expect(canonicalBytes(sealed.document)).toEqual(bytes)
  })
})

test('a builder seals known fields only', () => {
  const files = [config, { ...weights, local: '/home/me', part: undefined } as unknown as ManifestFile]
  expect(sealManifest(files)).toEqual(sealManifest([config, weights]))
  const sealed: Manifest = sealManifest(files).document
  expect(Object.keys(sealed.files[1]!).sort()).toEqual(['bt', 'digest', 'kind', 'name', 'size'])
})

test('property: a flipped bit never gives the same document, and never another error', () => {
  const { bytes } = sealManifest([config, weights], { 'svc.specVersion': '1' })
  fc.assert(
    fc.property(fc.nat(bytes.length * 8 - 1), (flip) => {
      const bad = bytes.slice()
      bad[flip >>> 3]! ^= 1 << (flip & 7)
      let outcome = ''
      try {
        expect(canonicalBytes(parseManifest(bad))).toEqual(bad)
      } catch (error) {
        outcome = errorOf(() => {
          throw error
        })
      }
      expect(outcome).toMatch(/^(E_CORRUPTION .*)?$/)
    }),
    { numRuns: 300 }
  )
})
