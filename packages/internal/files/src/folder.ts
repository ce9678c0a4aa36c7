import { constants, mkdirSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { KeyedLock } from '@svc/internal-concurrency'
import { errnoOf } from '@svc/internal-errors'
import { type FilePort, nodeFilePort } from './file-port.ts'

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW

/** Syncs a folder, which makes its entries durable. */
export function syncFolderSync(port: FilePort, path: string): void {
  const fd = port.openSync(path, FOLDER)
  try {
    port.fsyncSync(fd)
  } finally {
    port.closeSync(fd)
  }
}

export async function syncFolder(port: FilePort, path: string): Promise<void> {
  const fd = await port.open(path, FOLDER)
  try {
    await port.fsync(fd)
  } finally {
    await port.close(fd)
  }
}

/**
 * Creates a folder with its parents, as `mkdir -p` does; one that is there is no error. Node's own recursive `mkdir` reports most
 * errors, those of a read-only file system among them, as `ENOENT`.
 * @throws the system's error
 */
export async function makeFolders(
  path: string,
  mode = 0o777,
  port: Pick<FilePort, 'mkdir'> = nodeFilePort
): Promise<void> {
  try {
    await port.mkdir(path, mode)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) return requireFolder(path, error)
    await makeFolders(dirname(path), mode, port)
    // somebody else may have made it meanwhile
    await port.mkdir(path, mode).catch((again: unknown) => requireFolder(path, again))
  }
}

/** @throws `otherwise`, unless there is a folder */
async function requireFolder(path: string, otherwise: unknown): Promise<void> {
  const found = await stat(path).catch(() => undefined)
  if (found?.isDirectory() !== true) throw otherwise
}

/** {@link makeFolders} for a program that has nothing else to do. @throws the system's error */
export function makeFoldersSync(path: string): void {
  try {
    mkdirSync(path)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) return requireFolderSync(path, error)
    makeFoldersSync(dirname(path))
    try {
      mkdirSync(path)
    } catch (again) {
      // somebody else may have made it meanwhile
      requireFolderSync(path, again)
    }
  }
}

function requireFolderSync(path: string, otherwise: unknown): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw otherwise
}

/**
 * Creates folders durably, below a root that is durable itself.
 *
 * An existing folder need not be durable: its maker may be about to sync the parent, or may have been killed before. So
 * a folder counts only after this object has synced its parent, once per folder; concurrent callers wait for that.
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

  /** Creates `folder`, which is the root or lies below it, with all its parents (0700). @throws system errors */
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
        // a second sync might succeed although the entry was lost: the next attempt has to start with a new folder.
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
      if (errnoOf(error) !== 'EEXIST') throw error
      return false
    }
  }
}
