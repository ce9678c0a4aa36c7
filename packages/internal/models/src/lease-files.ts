import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { type Clock, systemClock } from '@svc/internal-clock'
import { errnoOf } from '@svc/internal-errors'
import { isRunning, processStart, thisMachine } from '@svc/internal-files'

/** The pid, its start time (see `processStart`), and a random part, since a process may have several. */
const NAME = /^(\d{1,10})\.(\d{1,20}|-)\.[0-9a-f]{8}$/
/** The blob that the owner is about to remove. */
const REMOVING = 'removing'
const NOTHING = ' '.repeat(71)
/** For how long a lease of another machine counts after its last line: whether its process lives cannot be told. */
const ELSEWHERE_MS = 24 * 3600_000
/** A removal takes microseconds; after this its owner is stopped, and removes nothing. */
const MAX_WAIT_MS = 2_000
const PAUSE_MS = 2
/** What a store answers that this process may read, and not write, or cannot see at all. */
const NOT_WRITABLE: readonly unknown[] = ['EROFS', 'EACCES', 'EPERM', 'ENOENT']

const folderOf = (root: string): string => join(root, 'leases')

/** Not the root above it, which may be that of a store elsewhere. */
function makeFolder(path: string): void {
  try {
    fs.mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error
  }
}

/**
 * What a process beside the owner of a store has handed out: `leases/<pid>.<start time>.<random>`, the machine and then
 * one digest a line. It counts as long as the process lives.
 *
 * A reader writes its lease, and then looks whether the owner is removing that blob; the owner writes what it is about
 * to remove, and then looks for leases. So at least one of them sees the other.
 */
export class LeaseFile {
  readonly #folder: string
  readonly #path: string
  readonly #clock: Pick<Clock, 'sleep' | 'monotonic'>
  #fd: number | undefined
  readonly #kept = new Set<string>()
  #mayNotWrite = false

  /** Nothing is written before the first {@link keep}. */
  constructor(root: string, clock: Pick<Clock, 'sleep' | 'monotonic'> = systemClock) {
    this.#folder = folderOf(root)
    const start = processStart(process.pid) ?? '-'
    this.#path = join(this.#folder, `${process.pid}.${start}.${randomBytes(4).toString('hex')}`)
    this.#clock = clock
  }

  /**
   * Afterwards each of the blobs is either here to stay, or absent. Where this process may not write, on a read-only disk,
   * in the folder of another user or outside a container, nothing is kept: its owner may remove them. @throws the system's error
   */
  async keep(digests: Iterable<string>): Promise<void> {
    const added = [...new Set(digests)].filter((digest) => !this.#kept.has(digest))
    if (added.length === 0) return
    const fd = this.#opened()
    if (fd === undefined) return
    fs.writeSync(fd, added.map((digest) => `${digest}\n`).join(''))
    for (const digest of added) this.#kept.add(digest)
    const begun = this.#clock.monotonic()
    while (added.some((digest) => digest === this.#removing()) && this.#clock.monotonic() - begun < MAX_WAIT_MS)
      await this.#clock.sleep(PAUSE_MS)
  }

  /** Undefined where this process may not write. */
  #opened(): number | undefined {
    if (this.#fd !== undefined || this.#mayNotWrite) return this.#fd
    try {
      makeFolder(this.#folder)
      this.#fd = fs.openSync(this.#path, 'ax', 0o600)
    } catch (error) {
      if (!NOT_WRITABLE.includes(errnoOf(error))) throw error
      this.#mayNotWrite = true
      return undefined
    }
    fs.writeSync(this.#fd, `${thisMachine()}\n`)
    return this.#fd
  }

  /** Idempotent. */
  close(): void {
    if (this.#fd === undefined) return
    fs.closeSync(this.#fd)
    this.#fd = undefined
    fs.rmSync(this.#path, { force: true })
  }

  #removing(): string {
    try {
      return fs.readFileSync(join(this.#folder, REMOVING), 'latin1').trim()
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
      return ''
    }
  }
}

interface ReadLease {
  readonly sizeBytes: number
  readonly machine: string
  readonly digests: ReadonlySet<string>
}

/** The leases of the processes beside this one, which owns the store. */
export class ReaderLeases {
  readonly #folder: string
  readonly #clock: Pick<Clock, 'now'>
  readonly #read = new Map<string, ReadLease>()
  #fd: number | undefined

  constructor(root: string, clock: Pick<Clock, 'now'>) {
    this.#folder = folderOf(root)
    this.#clock = clock
  }

  /**
   * Runs the removal of a blob, which asks `isKept` right before it: no reader gets the blob in between.
   * @throws the system's error
   */
  async removing<T>(digest: string, remove: (isKept: () => boolean) => Promise<T>): Promise<T> {
    if (this.#fd === undefined) {
      makeFolder(this.#folder)
      this.#fd = fs.openSync(join(this.#folder, REMOVING), 'w', 0o600)
    }
    fs.writeSync(this.#fd, digest, 0)
    try {
      return await remove(() => this.#covers(digest))
    } finally {
      fs.writeSync(this.#fd, NOTHING, 0)
    }
  }

  close(): void {
    if (this.#fd !== undefined) fs.closeSync(this.#fd)
    this.#fd = undefined
  }

  #covers(digest: string): boolean {
    for (const name of fs.readdirSync(this.#folder)) {
      const [, pid, startTime] = NAME.exec(name) ?? []
      if (pid === undefined) continue
      const path = join(this.#folder, name)
      const stat = fs.statSync(path, { throwIfNoEntry: false })
      if (stat === undefined) continue
      const lease = this.#leaseAt(path, stat.size)
      const isHere = lease.machine === thisMachine()
      const isLive = isHere
        ? isRunning({ pid: Number(pid), startTime: startTime! })
        : this.#clock.now() - stat.mtimeMs < ELSEWHERE_MS
      if (isLive && lease.digests.has(digest)) return true
      if (isLive) continue
      this.#read.delete(path)
      fs.rmSync(path, { force: true })
    }
    return false
  }

  #leaseAt(path: string, sizeBytes: number): ReadLease {
    const known = this.#read.get(path)
    if (known?.sizeBytes === sizeBytes) return known
    const [machine = '', ...digests] = fs.readFileSync(path, 'latin1').split('\n')
    const lease = { sizeBytes, machine, digests: new Set(digests) }
    this.#read.set(path, lease)
    return lease
  }
}
