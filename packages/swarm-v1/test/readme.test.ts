import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('the example of the README prints what its comments say, and its process ends by itself', async () => {
  const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
  const expected = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map((match) => match[1])
  expect(expected).toHaveLength(2)
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=svc-source', '--input-type=module-typescript', '-e', code],
    { cwd: new URL('..', import.meta.url), timeout: 60_000 }
  )
  expect(stdout.trimEnd().split('\n')).toEqual(expected)
})
