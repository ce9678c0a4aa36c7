import { startFakeHub } from '@svc/testkit/fake-hub'
import { readmeExample } from '@svc/testkit/readme'
import { expect, onTestFinished, test } from 'vitest'

test('the example in README.md prints the path of what it imported', { timeout: 120_000 }, async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const content = Buffer.from(`GGUF\x03${'\0'.repeat(19)}`, 'latin1')
  hub.commit({ id: 'Qwen/Qwen3-0.6B-GGUF', files: [{ path: 'Qwen3-0.6B-Q8_0.gguf', content, lfs: true }] })
  const { run } = readmeExample(import.meta.url)
  expect(await run({ HF_ENDPOINT: hub.endpoint })).toMatch(/\/tmp\/svc-example-.*\/blobs\/.*\n$/)
})
