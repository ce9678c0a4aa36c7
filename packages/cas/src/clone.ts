import { constants } from 'node:fs'
import { errnoOf, ioError } from './errors.ts'
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
 * Creates part files that share their disk blocks with the source file (reflinks), where the file system supports it:
 * nothing is written, and no space is used twice. The part is a snapshot: hash the part and not the source, which may
 * change in the meantime.
 */
export class Cloner {
  readonly #context: StoreContext
  /** Devices on which a reflink has failed once: it would fail for other files there, too. */
  readonly #refused = new Set<number>()

  constructor(context: StoreContext) {
    this.#context = context
  }

  /**
   * Creates the file `part` with the current content of the open file `fd`, and returns its descriptor; undefined when
   * blocks cannot be shared, and then no file is left.
   * @throws CasError `E_IO`, `E_NO_SPACE`
   */
  async clone(fd: number, part: string): Promise<number | undefined> {
    const { port } = this.#context
    try {
      const { dev } = await port.fstat(fd)
      if (this.#refused.has(dev)) return undefined
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
      // The clone inherited the mode of its source.
      await port.fchmod(partFd, 0o600)
      return partFd
    } catch (error) {
      await this.#context.discardPart(partFd, part)
      throw ioError(error, 'create part', part)
    }
  }
}
