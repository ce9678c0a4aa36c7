import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('the example in README.md prints the path of what it imported', { timeout: 120_000 }, () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
  const output = execFileSync(
    process.execPath,
    ['--conditions=svc-source', '--input-type=module-typescript', '-e', code],
    { cwd: new URL('..', import.meta.url), encoding: 'utf8' }
  )
  expect(output).toMatch(/^\/tmp\/svc-example-.*\/blobs\/.*\n$/)
})
