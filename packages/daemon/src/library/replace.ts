import { dirname, join } from 'node:path'
import { DurableFolders, type FilePort, nodeFilePort, readWhole, replaceFile, syncFolder } from '@svc/internal-files'

/** State files are small; a larger one is damaged. */
const MAX_STATE_BYTES = 16 << 20

/**
 * Small files that are replaced whole: temp file on the same file system, fsync, rename, fsync of the folder
 * (spec disk.6). A reader sees the old or the new bytes; when `write` or `confirm` resolves, what it sees survives a power loss.
 * An error, that of fsync included, is final: the temp file goes, and the old bytes stand unless only the last sync failed.
 *
 * Invariant: `#settled` holds only files whose name and folders were synced by this process after their last change.
 */
export class ReplacedFiles {
  readonly #port: FilePort
  readonly #temp: string
  readonly #folders: DurableFolders
  readonly #settled = new Set<string>()

  private constructor(root: string, port: FilePort) {
    this.#port = port
    this.#temp = join(root, 'tmp')
    this.#folders = new DurableFolders(port, dirname(root))
  }

  /** Takes over `root`, creating it in its parent, which must exist; temp files of a crashed predecessor are removed. */
  static async open(root: string, port: FilePort = nodeFilePort): Promise<ReplacedFiles> {
    const files = new ReplacedFiles(root, port)
    await files.#folders.make(files.#temp)
    for (const name of await port.readdir(files.#temp)) await port.unlink(join(files.#temp, name))
    return files
  }

  /** For reading only, while another process may own the folder: creates and removes nothing. */
  static forReading(root: string): ReplacedFiles {
    return new ReplacedFiles(root, nodeFilePort)
  }

  /** Undefined where there is no such file. @throws the system's error; RangeError above 16 MiB */
  read(file: string): Promise<Uint8Array | undefined> {
    return readWhole(this.#port, file, MAX_STATE_BYTES)
  }

  async write(file: string, text: string): Promise<void> {
    await this.#folders.make(dirname(file))
    this.#settled.delete(file)
    await replaceFile(this.#port, file, Buffer.from(text), { temporaryFolder: this.#temp })
    this.#settled.add(file)
  }

  /**
   * Makes the present content of a file durable, for a change that would write the same again: the earlier write may have failed at its
   * last sync, or its process may have been killed before.
   */
  async confirm(file: string): Promise<void> {
    if (this.#settled.has(file)) return
    const bytes = await this.read(file)
    if (bytes !== undefined) await this.write(file, Buffer.from(bytes).toString('utf8'))
  }

  /** Removes a file, durably; an absent one is fine. */
  async remove(file: string): Promise<void> {
    this.#settled.delete(file)
    const absent = (error: NodeJS.ErrnoException): void => {
      if (error.code !== 'ENOENT') throw error
    }
    await this.#port.unlink(file).catch(absent)
    // Also where it was gone: the last try may have failed in this.
    await syncFolder(this.#port, dirname(file)).catch(absent)
  }
}
