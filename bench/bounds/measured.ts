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
