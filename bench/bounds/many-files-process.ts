// `many-files-process.ts FOLDER OUT THREADS`: the bound of an import of many files. Each thread takes every n-th file and does for it what the store's
// promises ask for: read, flat hash, leaf hashes, written to a part, synced, mode 0444, linked to its digest's name, its folder synced. On ext4 the
// blocks of a part are chosen when it is written, by a descriptor that truncated it, so that the syncs share commits of the journal.
// All steps are made for all files of a thread together, as the store does. Nothing is recognized, checked, limited or told.
import { hash } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  statfsSync,
  unlinkSync,
  writeSync
} from 'node:fs'
import { join } from 'node:path'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { beginBound } from './measured.ts'

const BLOCK_BYTES = 16 << 10
const EXT4 = 0xef53
/** Descriptors that are open at the same time. */
const AT_ONCE = 256

interface Task {
  readonly folder: string
  readonly out: string
  readonly names: readonly string[]
}

async function main(): Promise<void> {
  const [folder = '', out = '', threads = '1'] = process.argv.slice(2)
  mkdirSync(join(out, 'incoming'), { recursive: true })
  const names = readdirSync(folder)
  const workers = Array.from({ length: Number(threads) }, (_, turn) => {
    const task: Task = { folder, out, names: names.filter((_name, i) => i % Number(threads) === turn) }
    return new Worker(new URL(import.meta.url), { workerData: task })
  })
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const end = beginBound()
  for (const worker of workers) worker.postMessage('begin')
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  end()
}

function syncFolder(path: string): void {
  const fd = openSync(path, 'r')
  fsyncSync(fd)
  closeSync(fd)
}

function commit({ folder, out }: Task, names: readonly string[]): void {
  const isEarly = statfsSync(out).type === EXT4
  const parts = names.map((name) => {
    const from = openSync(join(folder, name), 'r')
    const bytes = new Uint8Array(fstatSync(from).size)
    readSync(from, bytes)
    closeSync(from)
    const digest = hash('sha256', bytes)
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES)
      hash('sha256', bytes.subarray(at, at + BLOCK_BYTES), 'buffer')
    const part = join(out, 'incoming', name)
    const fd = openSync(part, 'wx', 0o600)
    const early = isEarly ? openSync(part, constants.O_WRONLY | constants.O_TRUNC) : undefined
    writeSync(fd, bytes)
    if (early !== undefined) closeSync(early)
    return { part, fd, digest, shard: join(out, digest.slice(0, 2)) }
  })
  for (const { fd } of parts) {
    fsyncSync(fd)
    fchmodSync(fd, 0o444)
    closeSync(fd)
  }
  const shards = new Set(parts.map(({ shard }) => shard))
  for (const shard of shards) mkdirSync(shard, { recursive: true })
  for (const { part, shard, digest } of parts) {
    linkSync(part, join(shard, digest))
    unlinkSync(part)
  }
  for (const shard of shards) syncFolder(shard)
}

if (isMainThread) await main()
else {
  parentPort!.postMessage('ready')
  parentPort!.once('message', () => {
    const task = workerData as Task
    for (let at = 0; at < task.names.length; at += AT_ONCE) commit(task, task.names.slice(at, at + AT_ONCE))
    syncFolder(task.out)
    parentPort!.postMessage('done')
  })
}
