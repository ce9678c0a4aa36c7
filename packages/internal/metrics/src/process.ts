import { readdir } from 'node:fs/promises'
import { counter, gauge, type Metric } from './exposition.ts'

/** Of this process, by the names that clients of Prometheus have for them. */
export async function processMetrics(startedAt: string): Promise<Metric[]> {
  const { user, system } = process.cpuUsage()
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage()
  const descriptors = await readdir('/proc/self/fd').catch(() => undefined)
  return [
    gauge('svc_heap_bytes', 'Heap in use by the main thread.', heapUsed),
    gauge('svc_buffer_bytes', 'Buffers outside the heap.', arrayBuffers),
    counter('process_cpu_seconds_total', 'CPU time of all threads.', (user + system) / 1e6),
    gauge('process_resident_memory_bytes', 'Resident memory.', rss),
    gauge('process_open_fds', 'Open file descriptors, if /proc is available.', descriptors?.length ?? []),
    gauge('process_start_time_seconds', 'When the program started, since the epoch.', Date.parse(startedAt) / 1e3)
  ]
}
