import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'

const MODULE = new URL('../../src/app/start-heap.ts', import.meta.url).href

// A process of its own: flags of V8 hold for all of it. Bit 4 of the status says that a function is optimised.
const CHILD = `
import { compileLater, tendStart } from '${MODULE}'
const isOptimised = (f) => (%GetOptimizationStatus(f) & 16) !== 0
const heat = (f) => { for (let n = 0; n < 3e6; n++) f(n) }
const hot = (n) => (n * 7) % 11
compileLater()
heat(hot)
const before = isOptimised(hot)
tendStart()()
for (let n = 0; n < 100 && !isOptimised(hot); n++) { heat(hot); await new Promise(setImmediate) }
console.log(JSON.stringify({ before, after: isOptimised(hot) }))
`

test('a small start compiles nothing hot, and gives the compilers back', () => {
  const flags = ['--allow-natives-syntax', '--disable-warning=ExperimentalWarning', '--input-type=module', '-e', CHILD]
  const { stdout, stderr } = spawnSync(process.execPath, flags, { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(JSON.parse(stdout)).toEqual({ before: false, after: true })
})
