import { randomBytes } from 'node:crypto'
import { mkdir, open, readdir, rename, rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Makes the entries of a folder durable. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Creates `folder` below the existing `root` (0700), each new level durable. */
async function makeFolder(root: string, folder: string): Promise<void> {
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (made === undefined) return
  for (let at = folder; at.length >= made.length && at !== root; at = dirname(at)) await syncFolder(dirname(at))
}

/**
 * Small files that are replaced whole: temp file beside them on the same file system, fsync, rename, fsync of the folder
 * (spec disk.6). A reader sees the old or the new bytes; when `write` resolves the new ones survive a power loss.
 * An error, that of fsync included, is final: the temp file goes and the old bytes stand.
 */
export class ReplacedFiles {
  readonly #root: string
  readonly #temp: string

  private constructor(root: string) {
    this.#root = root
    this.#temp = join(root, 'tmp')
  }

  /** Takes over `root`, creating it; temp files of a crashed predecessor are removed. */
  static async open(root: string): Promise<ReplacedFiles> {
    const files = new ReplacedFiles(root)
    await makeFolder(dirname(root), files.#temp)
    for (const name of await readdir(files.#temp)) await rm(join(files.#temp, name), { force: true })
    return files
  }

  async write(file: string, text: string): Promise<void> {
    const temp = join(this.#temp, randomBytes(12).toString('hex'))
    try {
      const handle = await open(temp, 'wx', 0o600)
      try {
        await handle.writeFile(text)
        await handle.sync()
      } finally {
        await handle.close()
      }
      await makeFolder(this.#root, dirname(file))
      await rename(temp, file)
    } catch (error) {
      await unlink(temp).catch(() => undefined)
      throw error
    }
    await syncFolder(dirname(file))
  }

  /** Removes a file, durably; an absent one is fine. */
  async remove(file: string): Promise<void> {
    try {
      await unlink(file)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
      throw error
    }
    await syncFolder(dirname(file))
  }
}
