import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import vm from 'node:vm'
import { build } from 'esbuild'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { buildInfo, leafLayer, piecesRoot } from '../src/index.ts'
import * as node from '../src/sha256-node.ts'
import * as pure from '../src/sha256-pure.ts'
import { seededBytes } from './seeded-bytes.ts'

function of(into: typeof pure.sha256Into, length: number, bytes: Uint8Array): string {
  const out = new Uint8Array(length + 4)
  into(bytes, out, 2)
  expect([out[0], out[1], out[length + 2], out[length + 3]]).toEqual([0, 0, 0, 0])
  return Buffer.from(out.subarray(2, length + 2)).toString('hex')
}
const text = (value: string): Uint8Array => new TextEncoder().encode(value)

describe.each([
  ['node', node],
  ['plain JavaScript', pure]
] as const)('%s', (_name, hashes) => {
  // FIPS 180-4, and NIST's examples.
  test.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
    [
      'abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq',
      '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1'
    ],
    ['a'.repeat(1_000_000), 'cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0']
  ])('SHA-256 of %.20j', (value, expected) => expect(of(hashes.sha256Into, 32, text(value))).toBe(expected))

  test.each([
    ['', 'da39a3ee5e6b4b0d3255bfef95601890afd80709'],
    ['abc', 'a9993e364706816aba3e25717850c26c9cd0d89d'],
    ['abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq', '84983e441c3bd26ebaae4aa1f95129e5e54670f1']
  ])('SHA-1 of %.20j', (value, expected) => expect(of(hashes.sha1Into, 20, text(value))).toBe(expected))

  test('any bytes are hashed, even if the result overlaps them', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const expected = createHash('sha256').update(bytes).digest('hex')
        expect(of(hashes.sha256Into, 32, bytes)).toBe(expected)
        expect(of(hashes.sha1Into, 20, bytes)).toBe(createHash('sha1').update(bytes).digest('hex'))
        if (bytes.length < 32) return
        const shared = bytes.slice()
        hashes.sha256Into(shared, shared, 0)
        expect(Buffer.from(shared.subarray(0, 32)).toString('hex')).toBe(expected)
      })
    )
  })
})

test('a bundle for browsers needs no module of Node, and gives the same hashes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'metainfo-'))
  try {
    const outfile = join(folder, 'bundle.js')
    await build({
      entryPoints: [fileURLToPath(new URL('../src/index.ts', import.meta.url))],
      bundle: true,
      // anything from Node is an error here.
      platform: 'browser',
      conditions: ['svc-source'],
      format: 'iife',
      globalName: 'metainfo',
      define: { 'import.meta.url': '"https://example.org/bundle.js"' },
      outfile
    })
    const globals = { TextDecoder, TextEncoder, URL, URLSearchParams }
    const bytes = seededBytes(100_000, 1)
    const root = vm.runInNewContext(
      `${readFileSync(outfile, 'utf8')}
      const leaves = metainfo.leafLayer(bytes)
      const piecesRoot = metainfo.piecesRoot(leaves, bytes.length)
      metainfo.formatInfohash(metainfo.buildInfo({ name: 'a', pieceLength: 65536, files: [{ path: 'a', length: bytes.length, piecesRoot }] }).infohash)`,
      { ...globals, bytes, Uint8Array }
    )
    const expected = buildInfo({
      name: 'a',
      pieceLength: 65_536,
      files: [{ path: 'a', length: bytes.length, piecesRoot: piecesRoot(leafLayer(bytes), bytes.length) }]
    })
    expect(root).toBe(`btmh:1220${Buffer.from(expected.infohash).toString('hex')}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
