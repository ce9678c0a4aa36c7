// `shared-blocks-process.ts FILE OUT source|clone`: the bound of an import of one large file that shares its blocks. OUT becomes a clone of FILE; one
// thread hashes flat, another hashes leaves, block by block, and the clone is synced. What they read is the file that was cloned, which the page
// cache may have, or its clone, which comes from the disk. Both read for themselves, so that they wait for nobody; nothing is checked, limited or told.
import { createHash, hash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, constants, copyFileSync, fsyncSync, openSync, readSync } from 'node:fs'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { beginBound } from './measured.ts'

const READ_BYTES = 1 << 20
const BLOCK_BYTES = 16 << 10

interface Task {
  readonly path: string
  readonly kind: 'flat' | 'leaves'
}

async function main(): Promise<void> {
  const [file = '', out = '', read = 'clone'] = process.argv.slice(2)
  const path = read === 'source' ? file : out
  const workers = (['flat', 'leaves'] as const).map(
    (kind) => new Worker(new URL(import.meta.url), { workerData: { path, kind } satisfies Task })
  )
  // the daemon's threads run before it is measured, too
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const end = beginBound()
  copyFileSync(file, out, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE)
  for (const worker of workers) worker.postMessage('begin')
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const fd = openSync(out, 'r')
  fsyncSync(fd)
  closeSync(fd)
  end()
}

function work({ path, kind }: Task): void {
  const block = new Uint8Array(READ_BYTES)
  const flat = createHash('sha256')
  const fd = openSync(path, 'r')
  for (let count = readSync(fd, block); count > 0; count = readSync(fd, block)) {
    const bytes = block.subarray(0, count)
    if (kind === 'flat') flat.update(bytes)
    else
      for (let at = 0; at < bytes.length; at += BLOCK_BYTES)
        hash('sha256', bytes.subarray(at, at + BLOCK_BYTES), 'buffer')
  }
  closeSync(fd)
  flat.digest()
}

if (isMainThread) await main()
else {
  parentPort!.postMessage('ready')
  parentPort!.once('message', () => {
    work(workerData as Task)
    parentPort!.postMessage('done')
  })
}
