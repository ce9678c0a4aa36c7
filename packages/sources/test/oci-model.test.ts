import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLibrary } from '@svc/library'
import { packArtifact, writeLayout } from '@svc/oci'
import { digestFromHex } from '@svc/ref'
import { ociImage, ociLayout } from '@svc/sources/oci'
import { expect, onTestFinished, test } from 'vitest'

const GGUF = Buffer.from(`GGUF\x03${'\0'.repeat(19)}`, 'latin1')

test('a model of an image layout is imported, and one that packs another manifest says so', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-sources-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'tiny-q8_0.gguf')
  writeFileSync(path, GGUF)
  const digest = digestFromHex(createHash('sha256').update(GGUF).digest('hex'))
  const file = { name: 'tiny-q8_0.gguf', kind: 'weights.gguf', sizeBytes: GGUF.length, digest, path }
  const layout = join(folder, 'layout')
  await writeLayout(layout, [packArtifact({ files: [file], annotations: {}, manifestDigest: digest, ref: 'a/b:q8_0' })])

  const library = await openLibrary({ root: join(folder, 'store') })
  onTestFinished(() => library.close())
  const { warnings } = await library.import(ociLayout(layout), 'me/tiny')
  expect(warnings).toContainEqual(expect.stringContaining(`packed from ${digest}`))
  const { files } = await library.open('svc:///me/tiny:q8_0')
  expect(readFileSync(files.at(-1)!.path).equals(GGUF)).toBe(true)

  const codeOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => 'imported',
      ({ code }: { readonly code: string }) => code
    )
  expect(await codeOf(library.import(ociLayout(layout, { manifest: 'other' }), 'me/tiny'))).toBe('E_NOT_AT_SOURCE')
  expect(await codeOf(library.import(ociImage('not an image'), 'me/tiny'))).toBe('E_INVALID')
})
