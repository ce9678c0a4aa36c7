import {
  type FileHandle,
  lstat,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rmdir,
  stat,
  statfs,
  unlink
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errnoOf, ifAbsent } from '@svc/internal-errors'
import {
  claimFolder,
  makeFolders,
  nodeFilePort,
  openRegular,
  readFully,
  syncFolder,
  writePartial
} from '@svc/internal-files'
import { digestHex } from '@svc/ref'
import { contentChunks, contentHash, digestOf, wrongBytes } from './content.ts'
import { attempt, ioError, PublishError } from './errors.ts'
import type { ObjectOptions, PublishedObject, StoredDocument, Target } from './target.ts'

/** Holds partial files, named by digest. Removed when it is empty. */
const WORK_FOLDER = '.svc-publish'

/**
 * A folder that a web server serves. Files are written to a work folder, synced and then renamed into place, so that the
 * server never sees an incomplete file. A lock on the folder admits one writer at a time.
 */
export class FolderTarget implements Target {
  readonly name: string
  readonly url = undefined
  readonly #root: string
  readonly #claim: FileHandle | undefined
  readonly #isPrivate: boolean

  private constructor(name: string, root: string, claim?: FileHandle, isPrivate = false) {
    this.name = name
    this.#root = root
    this.#claim = claim
    this.#isPrivate = isPrivate
  }

  /** For reading only: locks and creates nothing. @throws PublishError `E_NOT_FOUND`, `E_BAD_TARGET`, `E_IO` */
  static async openForReading(path: string): Promise<FolderTarget> {
    try {
      const root = await realpath(path)
      if ((await stat(root)).isDirectory()) return new FolderTarget(path, root)
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') throw new PublishError('E_NOT_FOUND', `there is no folder ${path}`, error)
      throw ioError(error, `read ${path}`)
    }
    throw new PublishError('E_BAD_TARGET', `${path} is not a folder`)
  }

  /**
   * Creates the folder if necessary and locks it. With `isPrivate`, folders are 0700 and files 0600.
   * @throws PublishError `E_BAD_TARGET`, `E_NO_SPACE`, `E_IO`
   */
  static async open(path: string, isPrivate: boolean): Promise<FolderTarget> {
    const mode = isPrivate ? 0o700 : 0o777
    try {
      await makeFolders(path, mode)
      const root = await realpath(path)
      const claim = await claimFolder(root)
      if (claim === undefined)
        throw new PublishError(
          'E_BAD_TARGET',
          `another process is publishing to ${path}; try again when it has finished`
        )
      try {
        await makeFolders(join(root, WORK_FOLDER), mode)
        return new FolderTarget(path, root, claim, isPrivate)
      } catch (error) {
        await claim.close()
        throw error
      }
    } catch (error) {
      if (['EEXIST', 'ENOTDIR'].includes(errnoOf(error) ?? ''))
        throw new PublishError('E_BAD_TARGET', `${path} is not a folder`, error)
      throw ioError(error, `write to ${path}`)
    }
  }

  async requireRoom(objects: readonly PublishedObject[]): Promise<void> {
    let needed = 0
    for (const { key, sizeBytes, digest } of objects) {
      if ((await sizeOf(join(this.#root, key))) === sizeBytes) continue
      needed += Math.max(0, sizeBytes - ((await sizeOf(this.#partial(digest))) ?? 0))
    }
    const { bavail, bsize } = await statfs(this.#root)
    if (needed <= bavail * bsize) return
    throw new PublishError('E_NO_SPACE', `${this.name} needs ${needed} bytes of free space and has ${bavail * bsize}`)
  }

  async has({ key, sizeBytes, digest }: PublishedObject, options: ObjectOptions): Promise<boolean> {
    const path = join(this.#root, key)
    const look = async (): Promise<boolean> => {
      const stats = await lstat(path).catch(ifAbsent)
      if (stats === undefined) return false
      if (stats.isDirectory())
        throw new PublishError('E_BAD_TARGET', `${path} is a folder, but svc must write a file there`)
      if (!stats.isFile() || stats.size !== sizeBytes) return false
      if (options.trustKey === true) return true
      return (await contentHash({ content: { path }, sizeBytes, digest }, 'sha256', options)) === digestHex(digest)
    }
    return attempt(`read ${path}`, look, options.signal)
  }

  async put(object: PublishedObject, options: ObjectOptions): Promise<void> {
    const path = join(this.#root, object.key)
    const write = async (): Promise<void> => {
      const partial = this.#partial(object.digest)
      const source = { ...object, bytesFrom: (start: number) => contentChunks(object, start) }
      if (!(await writePartial(partial, this.#isPrivate ? 0o600 : 0o644, source, options))) throw wrongBytes(object)
      await this.#makeFolders(dirname(path))
      await rename(partial, path)
      await syncFolder(nodeFilePort, dirname(path))
    }
    return attempt(`write ${path}`, write, options.signal)
  }

  async readRange({ key }: PublishedObject, start: number, end: number): Promise<Uint8Array> {
    const path = join(this.#root, key)
    return attempt(`read ${path}`, async () => {
      await using handle = await openRegular(path, { follow: true })
      const bytes = Buffer.alloc(end - start)
      return bytes.subarray(0, await readFully(handle, bytes, start))
    })
  }

  async readDocument(key: string, maxBytes: number): Promise<StoredDocument | undefined> {
    const path = join(this.#root, key)
    return attempt(`read ${path}`, async () => {
      const size = await sizeOf(path)
      if (size === undefined) return undefined
      if (size > maxBytes)
        throw new PublishError('E_BAD_TARGET', `${path} has more than ${maxBytes} bytes: svc did not write it`)
      const bytes = await readFile(path)
      return { bytes, version: digestOf(bytes) }
    })
  }

  async replaceDocument(
    object: PublishedObject,
    before: StoredDocument | undefined,
    signal?: AbortSignal
  ): Promise<boolean> {
    // the lock keeps other publishers out; this only catches edits by hand
    const now = await this.readDocument(object.key, Number.MAX_SAFE_INTEGER)
    if (now?.version !== before?.version) return false
    await this.put(object, { signal })
    return true
  }

  async remove(key: string): Promise<void> {
    const path = join(this.#root, key)
    await attempt(`remove ${path}`, () => unlink(path).catch(ifAbsent))
  }

  async isEmpty(): Promise<boolean> {
    const names = await attempt(`read ${this.name}`, () => readdir(this.#root))
    return names.every((name) => name === WORK_FOLDER || name === 'lost+found')
  }

  async close(): Promise<void> {
    if (this.#claim === undefined) return
    // fails, on purpose, while partial files remain
    await rmdir(join(this.#root, WORK_FOLDER)).catch(() => undefined)
    await this.#claim.close()
  }

  #partial(digest: PublishedObject['digest']): string {
    return join(this.#root, WORK_FOLDER, `${digestHex(digest)}.partial`)
  }

  /** Creates parent folders durably. Rejects symbolic links, which could lead out of the target. */
  async #makeFolders(folder: string): Promise<void> {
    if (folder === this.#root) return
    const parent = dirname(folder)
    await this.#makeFolders(parent)
    try {
      await mkdir(folder, this.#isPrivate ? 0o700 : 0o777)
      await syncFolder(nodeFilePort, parent)
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
      if (!(await lstat(folder)).isDirectory())
        throw new PublishError('E_BAD_TARGET', `${folder} is not a folder`, error)
    }
  }
}

/** Undefined unless it is a regular file. */
async function sizeOf(path: string): Promise<number | undefined> {
  const stats = await stat(path).catch(ifAbsent)
  return stats?.isFile() === true ? stats.size : undefined
}
