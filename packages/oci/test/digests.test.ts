// Digests in the documents of others: anything but 64 lower-case hex characters after `sha256:` is refused.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { digestOf, parseOciManifest, sealOci } from '../src/document.ts'
import { blobName } from '../src/layout.ts'
import { INDEX_TYPE, MANIFEST_TYPE } from '../src/media-types.ts'
import { openLayout } from '../src/open-layout.ts'

const hex = 'a'.repeat(64)
const WRONG = [
  'sha256:../../../secret',
  'sha256:/etc/passwd',
  `sha256:${hex}/../../../../secret`,
  `sha256:${hex.toUpperCase()}`,
  `SHA256:${hex}`,
  `sha256:${hex.slice(1)}`,
  `sha256:${hex}a`,
  `sha256:${hex}\n`,
  `sha512:${hex}${hex}`,
  `sha256+b64:${hex}`,
  hex,
  '',
  null,
  7,
  [`sha256:${hex}`]
]

const fails = expect.objectContaining({ name: 'OciError', code: 'E_FORMAT' })
const SECRET = Buffer.from('{"schemaVersion":2,"secret":true}')
const good = { mediaType: 'application/octet-stream', digest: digestOf(SECRET), size: SECRET.length }
const manifestWith = (more: object): object => ({
  schemaVersion: 2,
  mediaType: MANIFEST_TYPE,
  config: good,
  layers: [good],
  ...more
})

test.each(WRONG)('no layer, configuration or manifest has the digest %j', async (digest) => {
  const wrong = { ...good, digest }
  for (const more of [{ config: wrong }, { layers: [good, wrong] }])
    expect(() => parseOciManifest(sealOci(MANIFEST_TYPE, manifestWith(more)).bytes)).toThrow(fails)

  const place = mkdtempSync(join(tmpdir(), 'svc-oci-'))
  onTestFinished(() => rmSync(place, { recursive: true }))
  writeFileSync(join(place, 'secret'), SECRET)
  const layout = join(place, 'layout')
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true })
  writeFileSync(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  const write = (entry: object): void =>
    writeFileSync(
      join(layout, 'index.json'),
      JSON.stringify({ schemaVersion: 2, mediaType: INDEX_TYPE, manifests: [entry] })
    )
  write({ ...wrong, mediaType: MANIFEST_TYPE })
  await expect(openLayout(layout)).rejects.toEqual(fails)

  // a manifest that is as its index says, whose layer is not
  const sealed = sealOci(MANIFEST_TYPE, manifestWith({ layers: [wrong] }))
  writeFileSync(join(layout, blobName(sealed.digest)), sealed.bytes)
  write({ mediaType: MANIFEST_TYPE, digest: sealed.digest, size: sealed.bytes.length })
  const { index, document } = await openLayout(layout)
  const bytes = await document(index.manifests[0]!)
  expect(() => parseOciManifest(bytes)).toThrow(fails)
})
