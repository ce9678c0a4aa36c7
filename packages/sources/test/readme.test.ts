import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test } from 'vitest'

test('the example in README.md prints the path of what it imported', { timeout: 120_000 }, async () => {
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const content = Buffer.from(`GGUF\x03${'\0'.repeat(19)}`, 'latin1')
  hub.commit({ id: 'Qwen/Qwen3-0.6B-GGUF', files: [{ path: 'Qwen3-0.6B-Q8_0.gguf', content, lfs: true }] })
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=svc-source', '--input-type=module-typescript', '-e', code],
    { cwd: new URL('..', import.meta.url), env: { ...process.env, HF_ENDPOINT: hub.endpoint } }
  )
  expect(stdout).toMatch(/\/tmp\/svc-example-.*\/blobs\/.*\n$/)
})
