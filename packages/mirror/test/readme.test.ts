import { readmeExample } from '@svc/testkit/readme'
import { expect, test } from 'vitest'

test('the example in README.md serves its model in three ways', { timeout: 120_000 }, async () => {
  const { code, run } = readmeExample(import.meta.url)
  expect(code.trim().split('\n').length).toBeLessThan(30)
  const output = await run()
  const tags = JSON.stringify({ name: 'me/tiny', tags: ['q8_0'] })
  expect(output).toBe(`200 24\n200 ${tags.length}\n200 24\n`)
})
