// `idle-loop-process.ts SECONDS YIELDING EAGER`: the bound of the event loop's delay. An event loop that has nothing to do is woken every 2 ms beside YIELDING
// threads that hash at nice 10, as the store's do, and EAGER ones at nice 8, as the engine's do. What it
// measures is how long the system lets a thread wait that wants to run.
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { beginLoopBound } from './measured.ts'

const BLOCK_BYTES = 1 << 20

async function main(): Promise<void> {
  const [seconds = 3, yielding = 2, eager = 0] = process.argv.slice(2).map(Number)
  const workers = Array.from(
    { length: yielding + eager },
    (_, i) => new Worker(new URL(import.meta.url), { workerData: i < yielding })
  )
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const end = beginLoopBound()
  await delay(seconds * 1000)
  end()
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
