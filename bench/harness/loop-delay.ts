// Loaded into a daemon with --import: measures its event loop delay from SIGUSR2 on, and on exit writes the results to the file named
// by BENCH_LOOP_DELAY.
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

/** Delay of event loop iterations. */
export interface LoopDelay {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

const RESOLUTION_MS = 2
const path = process.env.BENCH_LOOP_DELAY
if (path !== undefined && isMainThread) {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  process.on('SIGUSR2', () => {
    histogram.enable()
    histogram.reset()
  })
  process.on('exit', () => {
    // the histogram records the interval between timers, so subtract the resolution
    const lateMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
    const delay: LoopDelay = {
      p50Ms: lateMs(histogram.percentile(50)),
      p99Ms: lateMs(histogram.percentile(99)),
      maxMs: lateMs(histogram.max)
    }
    writeFileSync(path, JSON.stringify(delay))
  })
}
