import { constants } from 'node:fs'
import { dirname } from 'node:path'
import { KeyedLock } from '@svc/internal-concurrency'
import type { FilePort } from './file-port.ts'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** Makes the entries of a folder durable. */
export function syncFolderSync(port: FilePort, path: string): void {
  const fd = port.openSync(path, FOLDER)
  try {
    port.fsyncSync(fd)
  } finally {
    port.closeSync(fd)
  }
}

/** As {@link syncFolderSync}, promised. */
export async function syncFolder(port: FilePort, path: string): Promise<void> {
  const fd = await port.open(path, FOLDER)
  try {
    await port.fsync(fd)
  } finally {
    await port.close(fd)
  }
}

/**
 * Folders that are made durably below a root which is durable itself.
 *
 * A folder that is there need not be durable: whoever made it may be about to sync its parent, or may have been killed before. So each
 * one counts only once this object has synced its parent, which happens once per folder; who comes meanwhile waits.
 */
export class DurableFolders {
  readonly #port: FilePort
  readonly #root: string
  readonly #durable = new Set<string>()
  readonly #making = new KeyedLock()

  constructor(port: FilePort, root: string) {
    this.#port = port
    this.#root = root
    this.#durable.add(root)
  }

  /** Makes `folder`, which is the root or lies below it, with all that leads there (0700). @throws system errors */
  async make(folder: string): Promise<void> {
    if (this.#durable.has(folder)) return
    if (!folder.startsWith(`${this.#root}/`)) throw new RangeError(`${folder} does not lie below ${this.#root}`)
    await this.make(dirname(folder))
    await this.#making.run(folder, undefined, async () => {
      if (this.#durable.has(folder)) return
      const made = await this.#mkdir(folder)
      try {
        await syncFolder(this.#port, dirname(folder))
      } catch (error) {
        // A second sync might succeed over an entry that was lost: the next try begins with a new folder.
        if (made) await this.#port.rmdir(folder).catch(() => undefined)
        throw error
      }
      this.#durable.add(folder)
    })
  }

  async #mkdir(folder: string): Promise<boolean> {
    try {
      await this.#port.mkdir(folder, 0o700)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      return false
    }
  }
}
