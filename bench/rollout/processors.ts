import { readFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { cpuSecondsOf } from '../harness/process-facts.ts'
import type { ProcessorUse } from './run.ts'

/** Ticks since the start of the machine: those in which a core did something, and all. */
function ticks(): readonly [busy: number, all: number] {
  const fields = readFileSync('/proc/stat', 'latin1').split('\n')[0]!.trim().split(/\s+/).slice(1, 9).map(Number)
  const all = fields.reduce((sum, each) => sum + each, 0)
  const [, , , idle = 0, waiting = 0] = fields
  return [all - idle - waiting, all]
}

/** Nanoseconds in which the main thread was ready to run and had no core. */
const waitedNs = (pid: number): number => Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1])

/** Watches what processes take of the cores, from now on: whether links or cores were the limit of a measurement. */
export class Processors {
  readonly #pids: readonly number[]
  readonly #begun = performance.now()
  readonly #before: readonly (readonly [cpu: number, waited: number])[]
  readonly #ticks = ticks()

  constructor(pids: readonly number[]) {
    this.#pids = pids
    this.#before = pids.map((pid) => [cpuSecondsOf(pid), waitedNs(pid)])
  }

  /** Up to now; processes that are gone are left out. */
  use(): ProcessorUse {
    const seconds = (performance.now() - this.#begun) / 1000
    const [busy, all] = ticks()
    let cpu = 0
    let waited = 0
    let left = 0
    for (const [at, pid] of this.#pids.entries()) {
      try {
        const [cpuBefore, waitedBefore] = this.#before[at]!
        const [cpuNow, waitedNow] = [cpuSecondsOf(pid), waitedNs(pid)]
        cpu += cpuNow - cpuBefore
        waited += (waitedNow - waitedBefore) / 1e9
        left += 1
      } catch {
        // killed by the scenario
      }
    }
    return {
      busy: (busy - this.#ticks[0]) / Math.max(1, all - this.#ticks[1]),
      waiting: waited / (seconds * Math.max(1, left)),
      own: cpu / (seconds * cpus().length)
    }
  }
}
