import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

/** Loads the client as `net/http.ts` does, in a process that has not, and counts the files of each turn of its event loop. */
const PROGRAM = `
import { createRequire } from 'node:module'
import { loadHttpClient } from '@svc/internal-net'
const { cache } = createRequire(import.meta.url)
const turns = []
let before = 0
let done = false
function look() {
  const count = Object.keys(cache).length
  turns.push(count - before)
  before = count
  if (!done) setImmediate(look)
}
setImmediate(look)
const from = new URL('./src/net/http.ts', import.meta.url).href
const client = await loadHttpClient(from)
look()
done = true
console.log(JSON.stringify({ turns, agent: typeof client.Agent, same: client === (await loadHttpClient(from)) }))
`

test('the HTTP client is loaded in parts, and others have their turns between', async () => {
  const flags = ['--conditions=svc-source', '--input-type=module', '--eval', PROGRAM]
  const cwd = new URL('../..', import.meta.url)
  const { stdout } = await promisify(execFile)(process.execPath, flags, { cwd })
  const { turns, agent, same } = JSON.parse(stdout) as { turns: number[]; agent: string; same: boolean }
  expect([agent, same]).toEqual(['function', true])
  expect(turns.reduce((sum, count) => sum + count)).toBeGreaterThan(80)
  // a part that undici renamed comes with another one, or with the rest
  expect(Math.max(...turns)).toBeLessThanOrEqual(12)
})
