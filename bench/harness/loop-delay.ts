// Loaded into a daemon with --import: measures its event loop from SIGUSR2 on, and leaves the figures in the file that BENCH_LOOP_DELAY names at its end.
import { writeFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { isMainThread } from 'node:worker_threads'

/** How late a turn of the event loop was. */
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
    // what it records is the time between two timers
    const lateMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
    const delay: LoopDelay = {
      p50Ms: lateMs(histogram.percentile(50)),
      p99Ms: lateMs(histogram.percentile(99)),
      maxMs: lateMs(histogram.max)
    }
    writeFileSync(path, JSON.stringify(delay))
  })
}
