// `one-file-process.ts FILE OUT`: the bound of an import of one large file. One thread hashes it flat; another hashes its leaves, block by block,
// and writes it; then it is synced. Both read the file for themselves, so that they wait for nobody; nothing is checked, limited or told.
import { createHash, hash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { beginBound } from './measured.ts'

const READ_BYTES = 1 << 20
const BLOCK_BYTES = 16 << 10

interface Task {
  readonly file: string
  /** Absent: the thread hashes flat. */
  readonly out?: string
}

async function main(): Promise<void> {
  const [file = '', out = ''] = process.argv.slice(2)
  const workers = [{ file }, { file, out }].map(
    (task: Task) => new Worker(new URL(import.meta.url), { workerData: task })
  )
  // the daemon's threads run before it is measured, too
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const end = beginBound()
  for (const worker of workers) worker.postMessage('begin')
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  end()
}

function blocksOf(file: string, take: (bytes: Uint8Array) => void): void {
  const block = new Uint8Array(READ_BYTES)
  const fd = openSync(file, 'r')
  for (let count = readSync(fd, block); count > 0; count = readSync(fd, block)) take(block.subarray(0, count))
  closeSync(fd)
}

function work({ file, out }: Task): void {
  if (out === undefined) {
    const flat = createHash('sha256')
    blocksOf(file, (bytes) => void flat.update(bytes))
    flat.digest()
    return
  }
  const fd = openSync(out, 'wx', 0o600)
  blocksOf(file, (bytes) => {
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES)
      hash('sha256', bytes.subarray(at, at + BLOCK_BYTES), 'buffer')
    writeSync(fd, bytes)
  })
  fsyncSync(fd)
  closeSync(fd)
}

if (isMainThread) await main()
else {
  parentPort!.postMessage('ready')
  parentPort!.once('message', () => {
    work(workerData as Task)
    parentPort!.postMessage('done')
  })
}
