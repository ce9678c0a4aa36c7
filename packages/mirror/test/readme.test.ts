import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('the example in README.md serves its model in three ways', { timeout: 120_000 }, () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
  expect(code.trim().split('\n').length).toBeLessThan(30)
  const output = execFileSync(
    process.execPath,
    ['--conditions=svc-source', '--input-type=module-typescript', '-e', code],
    { cwd: new URL('..', import.meta.url), encoding: 'utf8' }
  )
  const tags = JSON.stringify({ name: 'me/tiny', tags: ['q8_0'] })
  expect(output).toBe(`200 24\n200 ${tags.length}\n200 24\n`)
})
