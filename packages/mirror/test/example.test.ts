import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

test('the example, a test with a hub of its own, passes', { timeout: 120_000 }, () => {
  const path = fileURLToPath(new URL('../../../examples/hub.test.ts', import.meta.url))
  const { status, stdout } = spawnSync(process.execPath, ['--conditions=svc-source', '--test', path], {
    encoding: 'utf8',
    env: { ...process.env, NODE_TEST_CONTEXT: undefined }
  })
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^(?:#|ℹ) pass 1$/m)])
})
