// What a download over TLS into a store cannot leave out, and nothing else: the file at argv[2] (argv[3] bytes) comes in ranges on sockets of two
// threads, whose blocks are hashed and written where they were read to; one more thread takes the flat SHA-256 from what was written; synced. No
// resuming, no checks of answers, no limits, no errors. Seconds and CPU seconds come as a message, without the threads' start.
import { closeSync, constants, fsyncSync, openSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { BLOCK_BYTES, type Download } from './download-plan.ts'

const WORKER = new URL('./range-worker.ts', import.meta.url)
const FETCHING_THREADS = 2

const [url, size, target] = process.argv.slice(2) as [string, string, string]
const sizeBytes = Number(size)
const fd = openSync(target, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC, 0o600)
const blocks = Math.ceil(sizeBytes / BLOCK_BYTES)
const download: Download = {
  url,
  sizeBytes,
  fd,
  written: new Int32Array(new SharedArrayBuffer(4 * blocks)),
  next: new Int32Array(new SharedArrayBuffer(4))
}
const said = (thread: Worker): Promise<unknown> =>
  new Promise((resolve, reject) => thread.once('message', resolve).once('error', reject))
const threads = Array.from(
  { length: FETCHING_THREADS + 1 },
  (_, at) => new Worker(WORKER, { workerData: { download, follows: at === 0 }, trackUnmanagedFds: false })
)
await Promise.all(threads.map(said))
const [cpu, begun] = [process.cpuUsage(), performance.now()]
const done = threads.map(said)
for (const thread of threads) thread.postMessage('go')
await Promise.all(done)
fsyncSync(fd)
closeSync(fd)
const { user, system } = process.cpuUsage(cpu)
const result = { seconds: (performance.now() - begun) / 1000, cpuSeconds: (user + system) / 1e6 }
process.send!(result, () => process.exit(0))
