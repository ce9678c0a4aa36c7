import { constants } from 'node:fs'
import { dirname } from 'node:path'
import { encodeError, errnoOf, ioError } from './errors.ts'
import { type FilePort, syncFolderSync, writeFullySync } from './file-port.ts'
import { discardPart } from './hash-session.ts'
import type { CommitItem, CommitOutcome } from './thread-protocol.ts'

const NEW_PART = constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
/** File systems without hard links answer one of these. */
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL'])

/**
 * One part on its way to a blob. Order, for power loss as for kill -9: file synced → 0444 → name published without
 * replacing one → folder synced → acknowledged. The caller holds the digest's lock, so nobody else moves this name.
 */
class Commit {
  readonly item: CommitItem
  readonly #port: FilePort
  #partFd: number | undefined
  #partExists: boolean
  /** This commit made the name, and must take it back if the folder cannot be synced. */
  #published = false
  #existed = false
  #error: unknown

  constructor(port: FilePort, item: CommitItem) {
    this.#port = port
    this.item = item
    this.#partFd = item.partFd
    this.#partExists = item.bytes === undefined
  }

  get failed(): boolean {
    return this.#error !== undefined
  }

  step(work: () => void, operation: string): void {
    if (this.failed) return
    try {
      work()
    } catch (error) {
      this.#error = ioError(error, operation, this.item.blob)
    }
  }

  /** The bytes of a small blob into their part, unless the blob is there. */
  write(): void {
    const { item } = this
    this.#existed = this.#isWhole()
    if (this.#existed || item.bytes === undefined) return
    this.#partFd = this.#port.openSync(item.part, NEW_PART, 0o600)
    this.#partExists = true
    writeFullySync(this.#port, this.#partFd, item.bytes, 0)
  }

  /** An error here is final: a second fsync would report success over lost pages. */
  sync(): void {
    if (this.#existed || this.#partFd === undefined) return
    this.#port.fsyncSync(this.#partFd)
    this.#port.fchmodSync(this.#partFd, 0o444)
    const fd = this.#partFd
    this.#partFd = undefined
    this.#port.closeSync(fd)
  }

  publish(): void {
    if (this.#existed) return
    const { item } = this
    for (let attempt = 0; ; attempt++) {
      try {
        this.#link()
        this.#published = true
        return
      } catch (error) {
        const errno = errnoOf(error)
        if (attempt >= 3) throw error
        if (errno === 'EEXIST') {
          this.#existed = this.#isWhole()
          if (this.#existed) return
          this.#port.renameSync(item.blob, item.aside)
          syncFolderSync(this.#port, item.asideFolder)
        } else if (errno === 'ENOENT') {
          this.#port.mkdirSync(item.shard, 0o700)
          this.#port.chmodSync(item.shard, 0o700)
          syncFolderSync(this.#port, dirname(item.shard))
        } else throw error
      }
    }
  }

  /** The folder could not be synced: the name must not stay, since nobody may rely on it. */
  retract(error: unknown): void {
    if (this.failed) return
    this.#error = ioError(error, 'sync folder', this.item.shard)
    if (!this.#published) return
    try {
      this.#port.unlinkSync(this.item.blob)
    } catch {
      // The bytes under that name are right all the same; the failure is reported.
    }
  }

  end(): CommitOutcome {
    discardPart(this.#port, this.#partFd, this.#partExists ? this.item.part : undefined)
    if (this.#error === undefined) return { existed: this.#existed }
    return { existed: false, error: encodeError(this.#error) }
  }

  #link(): void {
    const { item } = this
    try {
      this.#port.linkSync(item.part, item.blob)
    } catch (error) {
      if (!NO_LINKS.has(errnoOf(error) ?? '')) throw error
      if (this.#stat() !== undefined) throw Object.assign(new Error('the blob exists'), { code: 'EEXIST' })
      this.#port.renameSync(item.part, item.blob)
      this.#partExists = false
    }
  }

  #isWhole(): boolean {
    const stat = this.#stat()
    return stat?.isFile() === true && stat.size === this.item.sizeBytes
  }

  #stat(): ReturnType<FilePort['lstatSync']> | undefined {
    try {
      return this.#port.lstatSync(this.item.blob)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined
      throw error
    }
  }
}

/**
 * Publishes parts together, phase by phase: the first fsync of a phase commits the file system's journal for the others,
 * and each folder is synced once. Each item succeeds or fails alone, and only after its own syncs.
 */
export function commitParts(port: FilePort, items: readonly CommitItem[]): CommitOutcome[] {
  const commits = items.map((item) => new Commit(port, item))
  for (const commit of commits) commit.step(() => commit.write(), 'write part')
  for (const commit of commits) commit.step(() => commit.sync(), 'sync part')
  for (const commit of commits) commit.step(() => commit.publish(), 'publish blob')
  const byShard = Map.groupBy(
    commits.filter((commit) => !commit.failed),
    (commit) => commit.item.shard
  )
  for (const [shard, members] of byShard) {
    try {
      syncFolderSync(port, shard)
    } catch (error) {
      for (const commit of members) commit.retract(error)
    }
  }
  return commits.map((commit) => commit.end())
}
