import { constants } from 'node:fs'
import { errnoOf } from '@svc/internal-errors'
import { isOnFileSystem } from '@svc/internal-files'
import { ioError } from './errors.ts'
import { identityOf, isSame } from './file-identity.ts'
import type { FileIdentity } from './store.ts'
import type { StoreContext } from './store-context.ts'

const OPEN_CLONE = constants.O_RDWR | constants.O_NOFOLLOW
/** The errors of a file system that cannot share blocks, or not between these two files, or not for this process. */
const NO_CLONE = new Set([
  'ENOTSUP',
  'EOPNOTSUPP',
  'EXDEV',
  'EINVAL',
  'ENOSYS',
  'ENOTTY',
  'EBADF',
  'ETXTBSY',
  'EACCES',
  'EPERM'
])

/**
 * `f_type` of statfs(2) on Linux for local file systems that share blocks, and keep the times that an `UnchangedSource`
 * relies on: XFS and Btrfs. Not those of a server, which may report old times.
 */
const SNAPSHOT_TYPES = new Set([0x58465342, 0x9123683e])
/** If the last write to a file is at least this old when it is cloned, any later write changes its times, however coarse they are. */
const SETTLED_NS = 2_000_000_000n

/** A part that shares its blocks with a source. */
export interface Clone {
  readonly partFd: number
  /** Present where the source may be read in place of the part. */
  readonly snapshot: UnchangedSource | undefined
}

/**
 * A source that nobody had written to for a while when it was cloned. Its bytes are usually in the page cache. Those of
 * the clone never are, and reading them from the disk takes longer than hashing them. As long as the source has the times
 * that it had before the clone, nobody wrote to it since: what is read from it is what the clone holds.
 */
export class UnchangedSource {
  readonly fd: number
  readonly #before: FileIdentity

  private constructor(fd: number, before: FileIdentity) {
    this.fd = fd
    this.#before = before
  }

  /** Call it before the source is cloned. Undefined where a later write might go unnoticed. */
  static before(fd: number, nowMs: number): UnchangedSource | undefined {
    const stat = identityOf(fd)
    const settledNs = BigInt(nowMs) * 1_000_000n - SETTLED_NS
    return stat.mtimeNs <= settledNs && stat.ctimeNs <= settledNs ? new UnchangedSource(fd, stat) : undefined
  }

  /** Whether everything read from the source since {@link before} is what its clone holds. */
  holds(): boolean {
    return isSame(identityOf(this.fd), this.#before)
  }
}

/**
 * Creates part files that share their disk blocks with the source file (reflinks), where the file system supports it:
 * nothing is written, and no space is used twice. The part is a snapshot: what is hashed is the part, or the source
 * while it provably holds the same bytes.
 */
export class Cloner {
  readonly #context: StoreContext
  /** Devices on which a reflink has failed once: it would fail for other files there, too. */
  readonly #refused = new Set<number>()
  #snapshots: Promise<boolean> | undefined

  constructor(context: StoreContext) {
    this.#context = context
  }

  /**
   * Creates the file `part` with the current content of the open file `fd`, and returns its descriptor; undefined when
   * blocks cannot be shared, and then no file is left.
   * @throws CasError `E_IO`, `E_NO_SPACE`
   */
  async clone(fd: number, part: string): Promise<Clone | undefined> {
    const { port, clock } = this.#context
    let snapshot: UnchangedSource | undefined
    try {
      const { dev } = await port.fstat(fd)
      if (this.#refused.has(dev)) return undefined
      if (await this.#keepsTimes()) snapshot = UnchangedSource.before(fd, clock.now())
      try {
        await port.clone(fd, part)
      } catch (error) {
        if (!NO_CLONE.has(errnoOf(error) ?? '')) throw error
        this.#refused.add(dev)
        return undefined
      }
    } catch (error) {
      throw ioError(error, 'share blocks with source', part)
    }
    let partFd: number | undefined
    try {
      partFd = await port.open(part, OPEN_CLONE)
      // the clone inherited the mode of its source.
      await port.fchmod(partFd, 0o600)
      return { partFd, snapshot }
    } catch (error) {
      await this.#context.discardPart(partFd, part)
      throw ioError(error, 'create part', part)
    }
  }

  /** Asked once: a store stays on its file system, and a source that shares blocks with it is on the same one. */
  #keepsTimes(): Promise<boolean> {
    const { port, layout } = this.#context
    return (this.#snapshots ??= isOnFileSystem(port, layout.root, SNAPSHOT_TYPES))
  }
}
