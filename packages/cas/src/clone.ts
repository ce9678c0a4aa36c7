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
 * Makes parts that share their blocks with the file that is taken in, where both lie on one file system that can do that: nothing is
 * written then, and nothing uses room twice. The part is a moment's picture of the file: whoever hashes must read the part, as the file
 * may change under him.
 */
export class Cloner {
  readonly #context: StoreContext
  /** Devices whose files were refused: the others are no different. */
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
