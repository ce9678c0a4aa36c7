// A test of code that downloads from a hub, here the hub's own client: the hub is a library on this machine, with one small model.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { snapshotDownload } from '@huggingface/hub'
import { localFiles, openLibrary } from '@svc/library'
import { serveModels } from '@svc/mirror'

const folder = await mkdtemp(join(tmpdir(), 'hub-'))
const file = join(folder, 'tiny-q8_0.gguf')
await writeFile(file, `GGUF\x03${'\0'.repeat(19)}`)
const library = await openLibrary({ root: join(folder, 'store') })
await library.import(localFiles([file]), 'me/tiny')
const { urls, close } = await serveModels(library, { hub: {} })
after(async () => {
  await close()
  await library.close()
  await rm(folder, { recursive: true })
})

test('the model arrives under its name', async () => {
  const snapshot = await snapshotDownload({ repo: 'me/tiny', hubUrl: urls.hub, cacheDir: join(folder, 'cache') })
  assert.deepEqual(await readFile(join(snapshot, 'tiny-q8_0.gguf')), await readFile(file))
})
