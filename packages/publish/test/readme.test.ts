import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readmeExample } from '@svc/testkit/readme'
import { expect, test } from 'vitest'
import * as api from '../src/index.ts'
import { makeModel, temporaryFolder } from './fixture.ts'

test('the example of the README runs', async () => {
  const path = join(temporaryFolder(), 'out')
  const { input } = makeModel(temporaryFolder(), { sizeBytes: 1000 })
  const printed = await readmeExample(import.meta.url).runWith({ api, input, path })
  expect(printed).toEqual([[expect.any(Number), expect.stringMatching(/^magnet:\?xt=urn:btmh:1220/)]])
  expect(existsSync(join(path, 'index.json'))).toBe(true)
})
