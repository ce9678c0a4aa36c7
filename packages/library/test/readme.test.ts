import { readmeExample } from '@svc/testkit/readme'
import { expect, test } from 'vitest'

test('the example in README.md prints the path of what it imported', { timeout: 120_000 }, async () => {
  const output = await readmeExample(import.meta.url).run()
  expect(output).toMatch(/^\/tmp\/svc-example-.*\/blobs\/.*\n$/)
})
