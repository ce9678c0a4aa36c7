import { dirname, join } from 'node:path'
import { DurableFolders, type FilePort, nodeFilePort, readWhole, replaceFile, syncFolder } from '@svc/internal-files'

/** The folders of state files below the root: every store has them (spec disk.21). */
export const STATE_FOLDERS = ['state/repos', 'state/artifacts', 'state/views'] as const

/** State files are small; a larger one is damaged. */
export const MAX_STATE_BYTES = 16 << 20

/**
 * Small files that are replaced atomically: temporary file on the same file system, fsync, rename, fsync of the folder
 * (spec disk.6). Readers see either the old or the new bytes; when `write` or `confirm` resolves, the content survives
 * a power loss. An error, even of fsync, is final: the temporary file is removed, and the old bytes remain unless only
 * the last sync failed.
 *
 * Invariant: `#settled` holds only files whose name and folders were synced by this process after their last change.
 */
export class ReplacedFiles {
  readonly #port: FilePort
  readonly #temp: string
  readonly #folders: DurableFolders
  readonly #settled = new Set<string>()
  readonly #mayWrite: () => Promise<void>
  #writers = 0
  #idle: (() => void) | undefined
  #thaw: Promise<void> | undefined

  private constructor(root: string, port: FilePort, mayWrite: () => Promise<void>) {
    this.#mayWrite = mayWrite
    this.#port = port
    this.#temp = join(root, 'tmp')
    this.#folders = new DurableFolders(port, dirname(root))
  }

  /**
   * Opens `root`, creating it in its existing parent, and removes temporary files after a crash.
   * @param mayWrite rejects where nothing may be written any more, such as in another store's folder
   */
  static async open(
    root: string,
    port: FilePort = nodeFilePort,
    mayWrite: () => Promise<void> = async () => undefined
  ): Promise<ReplacedFiles> {
    const files = new ReplacedFiles(root, port, mayWrite)
    await files.#folders.make(files.#temp)
    for (const name of await port.readdir(files.#temp)) await port.unlink(join(files.#temp, name))
    return files
  }

  /** For reading only, while another process may own the folder: creates and removes nothing. */
  static forReading(root: string): ReplacedFiles {
    return new ReplacedFiles(root, nodeFilePort, async () => undefined)
  }

  /** Undefined if there is no such file. @throws the system's error; RangeError above 16 MiB */
  read(file: string): Promise<Uint8Array | undefined> {
    return readWhole(this.#port, file, MAX_STATE_BYTES)
  }

  write(file: string, content: string | Uint8Array): Promise<void> {
    return this.#writing(async () => {
      await this.#folders.make(dirname(file))
      this.#settled.delete(file)
      await replaceFile(this.#port, file, Buffer.from(content), { temporaryFolder: this.#temp })
      // who took the folder over meanwhile may have read the old content: then this counts for nothing
      await this.#mayWrite()
      this.#settled.add(file)
    })
  }

  /** Runs work while no file changes: changes wait. The work must not wait for a change. */
  async frozen<T>(work: () => Promise<T>): Promise<T> {
    while (this.#thaw !== undefined) await this.#thaw
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#thaw = promise
    try {
      if (this.#writers > 0) await new Promise<void>((done) => (this.#idle = done))
      return await work()
    } finally {
      this.#idle = undefined
      this.#thaw = undefined
      resolve()
    }
  }

  async #writing(work: () => Promise<void>): Promise<void> {
    while (this.#thaw !== undefined) await this.#thaw
    this.#writers++
    try {
      await this.#mayWrite()
      await work()
    } finally {
      this.#writers--
      if (this.#writers === 0) this.#idle?.()
    }
  }

  /**
   * Makes a file's content durable, for a change that would write the same again: the earlier write may have failed
   * at its last sync, or its process may have been killed before.
   */
  async confirm(file: string): Promise<void> {
    if (this.#settled.has(file)) return
    const bytes = await this.read(file)
    if (bytes !== undefined) await this.write(file, bytes)
  }

  /** Removes a file, durably, if it exists. */
  remove(file: string): Promise<void> {
    return this.#writing(async () => {
      this.#settled.delete(file)
      const absent = (error: NodeJS.ErrnoException): void => {
        if (error.code !== 'ENOENT') throw error
      }
      await this.#port.unlink(file).catch(absent)
      // even if it was absent: an earlier attempt may have failed here.
      await syncFolder(this.#port, dirname(file)).catch(absent)
    })
  }
}
