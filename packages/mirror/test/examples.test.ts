import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const examples = globSync('*.ts', { cwd: new URL('../examples', import.meta.url) })

test.each(examples)('%s passes, and is short', { timeout: 120_000 }, (name) => {
  const url = new URL(`../examples/${name}`, import.meta.url)
  const lines = readFileSync(url, 'utf8').trim().split('\n')
  expect(lines.length).toBeLessThan(30)
  const { status, stdout } = spawnSync(process.execPath, ['--conditions=svc-source', '--test', url.pathname], {
    encoding: 'utf8',
    env: { ...process.env, NODE_TEST_CONTEXT: undefined }
  })
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^(?:#|ℹ) pass 1$/m)])
})
