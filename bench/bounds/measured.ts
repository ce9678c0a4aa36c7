import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { BoundResult } from '../harness/bound.ts'

/** Starts a measurement of this process: what came before, such as the start of Node, does not count. */
export function beginBound(): (more?: Partial<BoundResult>) => void {
  const [begun, cpuBefore] = [performance.now(), process.cpuUsage()]
  return (more = {}) => {
    const seconds = (performance.now() - begun) / 1000
    const { user, system } = process.cpuUsage(cpuBefore)
    const result: BoundResult = {
      seconds,
      cpuSeconds: (user + system) / 1e6,
      rssBytes: process.memoryUsage.rss(),
      ...more
    }
    process.stdout.write(JSON.stringify(result))
  }
}

const RESOLUTION_MS = 2

/** Measures also how late the event loop is when it is woken every 2 ms. */
export function beginLoopBound(): () => void {
  const end = beginBound()
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  return () => {
    histogram.disable()
    const lateMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
    end({
      p50Ms: lateMs(histogram.percentile(50)),
      p99Ms: lateMs(histogram.percentile(99)),
      maxMs: lateMs(histogram.max)
    })
  }
}
