import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { startFakeCatalog } from '@svc/testkit/fake-catalog'
import { startFakeHub } from '@svc/testkit/fake-hub'
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
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=svc-source', '--input-type=module-typescript', '-e', code],
    {
      cwd: new URL('..', import.meta.url),
      env: { ...process.env, HF_ENDPOINT: hub.endpoint, CATALOG: catalog.endpoint }
    }
  )
  expect(stdout).toMatch(/^24\b/)
})
