import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as api from '../src/index.ts'
import { makeModel, temporaryFolder } from './fixture.ts'

test('the example of the README runs', async () => {
  const path = join(temporaryFolder(), 'out')
  const { input } = makeModel(temporaryFolder(), { sizeBytes: 1000 })
  const code = /```ts\n([\s\S]*?)```/.exec(
    readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  )?.[1] as string
  const body = code.replace(/^import \{(.*)\} from '@svc\/publish'$/m, 'const {$1} = api')
  const printed: unknown[][] = []
  const run = new Function('api', 'input', 'path', 'console', `return (async () => {${body}})()`) as (
    ...values: unknown[]
  ) => Promise<void>
  await run(api, input, path, { log: (...line: unknown[]) => printed.push(line) })
  expect(printed).toEqual([[expect.any(Number), expect.stringMatching(/^magnet:\?xt=urn:btmh:1220/)]])
  expect(existsSync(join(path, 'index.json'))).toBe(true)
})
