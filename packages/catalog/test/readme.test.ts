import { startFakeCatalog } from '@svc/testkit/fake-catalog'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { readmeExample } from '@svc/testkit/readme'
import { expect, onTestFinished, test } from 'vitest'

test('the example in README.md imports what the hub lists', { timeout: 120_000 }, async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const catalog = await startFakeCatalog()
  onTestFinished(() => catalog.close())
  const content = Buffer.from(`GGUF\x03${'\0'.repeat(19)}`, 'latin1')
  const id = 'Org/Model-GGUF'
  const commit = hub.commit({ id, files: [{ path: 'model-q8_0.gguf', content, lfs: true }] })
  // nobody seeds it: the web has it
  const webseed = encodeURIComponent(`${hub.endpoint}/${id}/resolve/${commit}`)
  const magnet = `magnet:?xt=urn:btih:${'ab'.repeat(20)}&dn=model-q8_0.gguf&ws=${webseed}`
  catalog.list([{ repo: id, seeds: 0, magnet }])
  const { run } = readmeExample(import.meta.url)
  expect(await run({ HF_ENDPOINT: hub.endpoint, CATALOG: catalog.endpoint })).toMatch(/^24\b/)
})
