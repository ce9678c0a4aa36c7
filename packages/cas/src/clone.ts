import { constants } from 'node:fs'
import { errnoOf, ioError } from './errors.ts'
import type { StoreContext } from './store-context.ts'

const OPEN_CLONE = constants.O_RDWR | constants.O_NOFOLLOW
/** The file system cannot share blocks, or not between these two files, or not with this process. */
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
 * Creates parts that share their disk blocks with the source file (reflinks), where the file system supports that: nothing is written, and
 * no space is used twice. The part is a snapshot: hash the part and not the source, which may change meanwhile.
 */
export class Cloner {
  readonly #context: StoreContext
  /** Devices on which a reflink failed once: it would fail for their other files as well. */
  readonly #refused = new Set<number>()

  constructor(context: StoreContext) {
    this.#context = context
  }

  /**
   * The descriptor of the new file `part`, with what the open file `fd` holds now; undefined where blocks cannot be shared, and nothing
   * is left then. @throws CasError `E_IO`, `E_NO_SPACE`
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
      // It came with the mode of its source.
      await port.fchmod(partFd, 0o600)
      return partFd
    } catch (error) {
      await this.#context.discardPart(partFd, part)
      throw ioError(error, 'create part', part)
    }
  }
}
