import { createHash } from 'node:crypto'
import { readmeExample } from '@svc/testkit/readme'
import { expect, test } from 'vitest'

test('the example in README.md fetches the model from the other library, byte for byte', {
  timeout: 120_000
}, async () => {
  const { code, run } = readmeExample(import.meta.url)
  expect(code.trim().split('\n').length).toBeLessThan(30)
  const output = await run()
  const digest = createHash('sha256')
    .update(`GGUF\x03${'\0'.repeat(19)}`)
    .digest('hex')
  expect(output).toBe(`24 sha256:${digest}\n`)
})
