import { readmeExample } from '@svc/testkit/readme'
import { expect, test } from 'vitest'

test('the example in README.md prints what its comments say', async () => {
  const { promised, run } = readmeExample(import.meta.url)
  expect(promised).toHaveLength(2)
  expect((await run()).trimEnd().split('\n')).toEqual(promised)
})
