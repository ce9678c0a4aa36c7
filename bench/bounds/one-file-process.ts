// `one-file-process.ts FILE OUT`: the bound of an import of one large file. One thread hashes it flat; another hashes its leaves, block by block.
// The second one writes most of it and the first one the rest, in the share that keeps both busy to the end; then it is synced. Both read the file for
// themselves, so that they wait for nobody; nothing is checked, limited or told, and nothing is folded from the leaves.
import { createHash, hash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, fsyncSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { beginBound } from './measured.ts'

const READ_BYTES = 1 << 20
const BLOCK_BYTES = 16 << 10
/** What the thread that hashes leaves writes of the file. */
const SHARE = 0.62

interface Task {
  readonly kind: 'flat' | 'leaves'
  readonly file: string
  readonly out: string
}

async function main(): Promise<void> {
  const [file = '', out = ''] = process.argv.slice(2)
  closeSync(openSync(out, 'wx', 0o600))
  const workers = (['flat', 'leaves'] as const).map(
    (kind) => new Worker(new URL(import.meta.url), { workerData: { kind, file, out } satisfies Task })
  )
  // the daemon's threads run before it is measured, too
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const end = beginBound()
  for (const worker of workers) worker.postMessage('begin')
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  end()
}

function blocksOf(file: string, take: (bytes: Uint8Array, position: number) => void): void {
  const block = new Uint8Array(READ_BYTES)
  const fd = openSync(file, 'r')
  let position = 0
  for (let count = readSync(fd, block); count > 0; count = readSync(fd, block)) {
    take(block.subarray(0, count), position)
    position += count
  }
  closeSync(fd)
}

function work({ kind, file, out }: Task): void {
  const fd = openSync(out, 'r+')
  const split = statSync(file).size * SHARE
  const flat = kind === 'flat' ? createHash('sha256') : undefined
  blocksOf(file, (bytes, position) => {
    flat?.update(bytes)
    for (let at = 0; flat === undefined && at < bytes.length; at += BLOCK_BYTES)
      hash('sha256', bytes.subarray(at, at + BLOCK_BYTES), 'buffer')
    if (position < split === (flat === undefined)) writeSync(fd, bytes, 0, bytes.length, position)
  })
  flat?.digest()
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
