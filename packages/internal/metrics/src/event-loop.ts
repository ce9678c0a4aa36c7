import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { loopBudget } from '@svc/internal-concurrency'
import type { Metric, Sample } from './exposition.ts'

const RESOLUTION_MS = 10
/** Quantiles cover at least this much time: frequent or concurrent readers see the same window. */
const WINDOW_MS = 60_000
const QUANTILES = [0.5, 0.99]

export class EventLoop {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  #windowBegan = performance.now()
  /** The sum over completed windows. */
  #sumSeconds = 0
  #count = 0

  constructor() {
    this.#delay.enable()
  }

  close(): void {
    this.#delay.disable()
  }

  metrics(): Metric[] {
    const quantiles = QUANTILES.map(
      (quantile): Sample => ({
        labels: { quantile: `${quantile}` },
        value: late(this.#delay.percentile(quantile * 100))
      })
    )
    const { count } = this.#delay
    const sum = count === 0 ? 0 : late(this.#delay.mean) * count
    const samples: Sample[] = [
      ...quantiles,
      { suffix: '_sum', value: this.#sumSeconds + sum },
      { suffix: '_count', value: this.#count + count }
    ]
    if (performance.now() - this.#windowBegan > WINDOW_MS) {
      this.#sumSeconds += sum
      this.#count += count
      this.#delay.reset()
      this.#windowBegan = performance.now()
    }
    const { active, idle } = performance.eventLoopUtilization()
    const spent = (state: string, ms: number): Sample => ({ labels: { state }, value: ms / 1e3 })
    return [
      {
        name: 'svc_event_loop_delay_seconds',
        type: 'summary',
        help: 'Event loop delay: quantiles over the last minute; sum and count over completed windows.',
        samples
      },
      {
        name: 'svc_event_loop_seconds_total',
        type: 'counter',
        help: 'Time that the event loop was active or idle.',
        samples: [spent('active', active), spent('idle', idle)]
      },
      {
        name: 'svc_event_loop_turns_used_up_total',
        type: 'counter',
        help: 'Turns of the event loop whose time for long work was used up, by what used it up.',
        samples: [...loopBudget.usedUp].map(([work, value]): Sample => ({ labels: { work }, value }))
      }
    ]
  }
}

/** Converts the histogram's nanoseconds, which include its own resolution, to seconds. */
const late = (ns: number): number => (Number.isFinite(ns) ? Math.max(0, ns / 1e9 - RESOLUTION_MS / 1e3) : 0)
