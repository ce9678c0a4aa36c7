import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readmeExample } from '@svc/testkit/readme'
import { expect, onTestFinished, test } from 'vitest'
import { digestOf } from '../src/document.ts'
import * as api from '../src/index.ts'

test('the example of the README runs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-oci-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'tiny-q8_0.gguf')
  writeFileSync(path, 'weights')
  const digest = digestOf(Buffer.from('weights'))
  const files = [{ name: 'tiny-q8_0.gguf', kind: 'weights.gguf', sizeBytes: 7, digest, path }]
  const given = { api, files, manifestDigest: digest, folder: join(folder, 'layout') }
  const printed = await readmeExample(import.meta.url).runWith(given)
  const blob = join(folder, 'layout/blobs/sha256', digest.slice('sha256:'.length))
  expect(printed).toEqual([['tiny-q8_0.gguf', 7, { path: blob, offset: 0, sizeBytes: 7 }]])
})
