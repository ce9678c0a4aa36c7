import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Metric, Sample } from './exposition.ts'

const RESOLUTION_MS = 10
/** Quantiles are of this time at least: who asks more often, or a second reader, sees those of the same window. */
const WINDOW_MS = 60_000
const QUANTILES = [0.5, 0.99]

/** How late the event loop of the main thread is, and how busy. */
export class EventLoop {
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  #windowBegan = performance.now()
  /** Of the windows that are over. */
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
        help: 'How late the event loop is, of the last minute; sum and count since it is looked at.',
        samples
      },
      {
        name: 'svc_event_loop_seconds_total',
        type: 'counter',
        help: 'Time that the event loop worked (active) or waited (idle).',
        samples: [spent('active', active), spent('idle', idle)]
      }
    ]
  }
}

/** Nanoseconds of the histogram, which counts its own resolution in, as seconds. */
const late = (ns: number): number => (Number.isFinite(ns) ? Math.max(0, ns / 1e9 - RESOLUTION_MS / 1e3) : 0)
