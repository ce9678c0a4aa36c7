// `idle-loop-process.ts SECONDS YIELDING EAGER`: the bound of the event loop's delay. An event loop that has nothing to do is woken every 2 ms beside YIELDING
// threads that hash at nice 10, as the store's do, and EAGER ones at nice 8, as the engine's do. What it
// measures is how long the system lets a thread wait that wants to run.
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { beginBound } from './measured.ts'

const RESOLUTION_MS = 2
const BLOCK_BYTES = 1 << 20

async function main(): Promise<void> {
  const [seconds = 3, yielding = 2, eager = 0] = process.argv.slice(2).map(Number)
  const workers = Array.from(
    { length: yielding + eager },
    (_, i) => new Worker(new URL(import.meta.url), { workerData: i < yielding })
  )
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const end = beginBound()
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  await delay(seconds * 1000)
  histogram.disable()
  const lateMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  end({
    p50Ms: lateMs(histogram.percentile(50)),
    p99Ms: lateMs(histogram.percentile(99)),
    maxMs: lateMs(histogram.max)
  })
  await Promise.all(workers.map((worker) => worker.terminate()))
}

if (isMainThread) await main()
else {
  // 0 is this thread on Linux
  if (process.platform === 'linux') setPriority(0, workerData === true ? 10 : 8)
  const block = new Uint8Array(BLOCK_BYTES)
  parentPort!.postMessage('ready')
  for (;;) hash('sha256', block, 'buffer')
}
