import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

test('the example in README.md fetches the model from the other library, byte for byte', { timeout: 120_000 }, () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  const code = /```ts\n([\s\S]*?)```/.exec(readme)?.[1] ?? ''
  expect(code.trim().split('\n').length).toBeLessThan(30)
  const output = execFileSync(
    process.execPath,
    ['--conditions=svc-source', '--input-type=module-typescript', '-e', code],
    { cwd: new URL('..', import.meta.url), encoding: 'utf8' }
  )
  const digest = createHash('sha256')
    .update(`GGUF\x03${'\0'.repeat(19)}`)
    .digest('hex')
  expect(output).toBe(`24 sha256:${digest}\n`)
})
