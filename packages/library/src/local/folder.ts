import { type BigIntStats, constants, existsSync, lstatSync } from 'node:fs'
import { type FileHandle, lstat, open, readdir } from 'node:fs/promises'
import { isOnNetworkFileSystem, nodeFilePort, QuickReads } from '@svc/internal-files'
import { LibraryError } from '@svc/internal-state'

/**
 * Folders are held open, so that names are looked up in the folder that was checked rather than in what is at its
 * path now. Node has no `openat`; on Linux `/proc/self/fd/<fd>/<name>` does the same. Elsewhere names are looked up
 * by path: links as the last component are still refused, but not a swap of a parent folder during the walk.
 */
const HAS_PROC_FD = existsSync('/proc/self/fd')

const quickLooks = new QuickReads()

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
/** Opening a FIFO must not hang, and a device must not be read: the type is checked on the descriptor. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY

export class OpenFolder {
  /** For messages. */
  readonly path: string
  readonly #handle: FileHandle

  constructor(path: string, handle: FileHandle) {
    this.path = path
    this.#handle = handle
  }

  /** Where the system looks a name up. */
  at(name: string): string {
    return HAS_PROC_FD ? `/proc/self/fd/${this.#handle.fd}/${name}` : this.pathOf(name)
  }

  /** For messages. */
  pathOf(name: string): string {
    return `${this.path === '/' ? '' : this.path}/${name}`
  }

  lstat(name: string): Promise<BigIntStats> {
    return lstat(this.at(name), { bigint: true })
  }

  /** Raw names, which need not be UTF-8, and whether the folder says that it is a regular file. */
  async list(): Promise<readonly { readonly name: Buffer; readonly isFile: boolean }[]> {
    const entries = await readdir(this.#here, { encoding: 'buffer', withFileTypes: true })
    return entries.map((entry) => ({ name: entry.name, isFile: entry.isFile() }))
  }

  /**
   * {@link lstat} for many files of this folder. A look at what the system has in memory is made on this thread, since
   * the thread pool costs five times as much; not on file systems that may stop responding.
   */
  async looks(): Promise<(name: string) => Promise<BigIntStats>> {
    if (!HAS_PROC_FD || (await isOnNetworkFileSystem(nodeFilePort, this.#here))) return (name) => this.lstat(name)
    return (name) =>
      quickLooks.run(
        () => lstatSync(this.at(name), { bigint: true }),
        () => this.lstat(name)
      )
  }

  get #here(): string {
    return HAS_PROC_FD ? `/proc/self/fd/${this.#handle.fd}` : this.path
  }

  /** @throws LibraryError `E_SOURCE_NOT_REGULAR` for a link; other errors as they are. */
  async folder(name: string): Promise<OpenFolder> {
    try {
      return new OpenFolder(this.pathOf(name), await open(this.at(name), FOLDER))
    } catch (error) {
      throw await this.#explained(name, error)
    }
  }

  /** @throws LibraryError `E_SOURCE_NOT_REGULAR` unless it is a regular file; other errors as they are. */
  async file(name: string): Promise<{ readonly handle: FileHandle; readonly stat: BigIntStats }> {
    let handle
    try {
      handle = await open(this.at(name), FILE)
    } catch (error) {
      throw await this.#explained(name, error)
    }
    try {
      const stat = await handle.stat({ bigint: true })
      if (!stat.isFile()) throw sourceNotRegular(this.pathOf(name), stat)
      return { handle, stat }
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  close(): Promise<void> {
    return this.#handle.close()
  }

  /** ELOOP, ENOTDIR and ENXIO (a socket) mean that the kernel refused; find out what the file is. */
  async #explained(name: string, error: unknown): Promise<unknown> {
    const path = this.pathOf(name)
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ELOOP' && code !== 'ENOTDIR' && code !== 'EMLINK' && code !== 'ENXIO' && code !== 'EOPNOTSUPP')
      return error
    const stat = await this.lstat(name).catch(() => undefined)
    if (stat !== undefined && !stat.isFile() && !stat.isDirectory()) return sourceNotRegular(path, stat)
    return code === 'ELOOP' || code === 'EMLINK' ? sourceNotRegular(path, undefined) : error
  }
}

/** The refusal of everything that is neither a regular file nor a folder (spec route.15). */
export function sourceNotRegular(path: string, stat: BigIntStats | undefined): LibraryError {
  const what =
    stat === undefined || stat.isSymbolicLink()
      ? 'a symbolic link'
      : stat.isFIFO()
        ? 'a FIFO'
        : stat.isSocket()
          ? 'a socket'
          : stat.isDirectory()
            ? 'a folder now'
            : 'a device'
  return new LibraryError(
    'E_SOURCE_NOT_REGULAR',
    `${JSON.stringify(path)} is ${what}; only regular files are imported, and links are not followed: give the real path`
  )
}

/**
 * Opens the folder of the last component of an absolute path, no component of which may be a link; returns it and that
 * component (undefined for `/` itself). The caller closes the folder.
 */
export async function openParent(
  path: string
): Promise<{ readonly parent: OpenFolder; readonly last: string | undefined }> {
  const parts = path.split('/').filter((part) => part !== '')
  const last = parts.pop()
  let folder = new OpenFolder('/', await open('/', FOLDER))
  try {
    for (const part of parts) {
      const next = await folder.folder(part)
      await folder.close()
      folder = next
    }
  } catch (error) {
    await folder.close()
    throw error
  }
  return { parent: folder, last }
}

/** {@link openParent} for the duration of `use`. */
export async function withParent<T>(
  path: string,
  use: (parent: OpenFolder, last: string | undefined) => Promise<T>
): Promise<T> {
  const { parent, last } = await openParent(path)
  try {
    return await use(parent, last)
  } finally {
    await parent.close()
  }
}
