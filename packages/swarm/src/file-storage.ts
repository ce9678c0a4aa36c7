import { readSync, readvSync } from 'node:fs'
import { type FileHandle, open, rename, stat } from 'node:fs/promises'
import path from 'node:path'
import { makeFolders, openPartial, openRegular, QuickReads, writeAt } from '@svc/internal-files'
import type { LayoutFile, TorrentLayout } from '@svc/metainfo'
import { LRUCache } from 'lru-cache'
import { SwarmError } from './errors.ts'
import type { FileState, FileWriter, TorrentStorage } from './storage.ts'

/** Options of {@link createFileStorage}. */
export interface FileStorageOptions {
  /** Treat every existing file of the right size as complete, without hashing it. Default false. */
  readonly trusted?: boolean
}

interface SharedHandle {
  readonly handle: Promise<FileHandle>
  /** Set while it is open and kept. */
  fd: number | undefined
  users: number
  isDropped: boolean
}

/** Complete files that are open at once. */
const MAX_OPEN_FILES = 64
/** The bytes of a seed are mostly in the page cache; through the thread pool each read costs twice as much. */
const quickReads = new QuickReads()

/**
 * A torrent as plain files under `folder/<torrent name>/<path>` (for a torrent of one file with the torrent's name:
 * directly in `folder`). Incomplete files have the suffix `.part`; a complete one is synced and renamed. After a crash
 * a `.part` file is re-hashed as a whole.
 */
export function createFileStorage(folder: string, options: FileStorageOptions = {}): TorrentStorage {
  return new FileStorage(folder, options)
}

class FileStorage implements TorrentStorage {
  readonly #folder: string
  readonly #options: FileStorageOptions
  readonly #open: LRUCache<number, SharedHandle>
  readonly #incomplete = new Map<number, FileHandle>()
  #layout: TorrentLayout | undefined

  constructor(folder: string, options: FileStorageOptions) {
    this.#folder = folder
    this.#options = options
    this.#open = new LRUCache({
      max: MAX_OPEN_FILES,
      dispose: (file) => {
        file.isDropped = true
        file.fd = undefined
        if (file.users === 0) void shut(file)
      }
    })
  }

  async open(layout: TorrentLayout): Promise<void> {
    this.#layout = layout
  }

  #path(index: number): string {
    const layout = this.#layout!
    const file = layout.files[index]!
    const segments = layout.singleFile ? [file.path] : [layout.name, ...file.path.split('/')]
    return path.join(this.#folder, ...segments)
  }

  async state(file: LayoutFile): Promise<FileState> {
    const size = await sizeOf(this.#path(file.index))
    if (size === file.lengthBytes) {
      if (this.#options.trusted === true) return { kind: 'complete' }
      return { kind: 'partial', ranges: [[0, size]] }
    }
    const written = await sizeOf(`${this.#path(file.index)}.part`)
    if (written === undefined || written === 0) return { kind: 'partial', ranges: [] }
    return { kind: 'partial', ranges: [[0, Math.min(written, file.lengthBytes)]] }
  }

  readNow(fileIndex: number, offset: number, targets: readonly Uint8Array[]): number | undefined {
    const fd = this.#incomplete.get(fileIndex)?.fd ?? this.#open.get(fileIndex)?.fd
    if (fd === undefined || !quickReads.allowed) return undefined
    const count = quickReads.tryNow(() => readvSync(fd, targets, offset))
    if (count === undefined) return 0
    // the end of the file: `read` finds out that bytes are lost.
    return count === 0 ? undefined : count
  }

  async read(fileIndex: number, offset: number, target: Uint8Array): Promise<number> {
    const incomplete = this.#incomplete.get(fileIndex)
    if (incomplete !== undefined) return readAt(incomplete, target, offset)
    const file = this.#open.get(fileIndex) ?? this.#openFile(fileIndex)
    file.users += 1
    try {
      return await readAt(await file.handle, target, offset)
    } finally {
      file.users -= 1
      if (file.isDropped && file.users === 0) void shut(file)
    }
  }

  #openFile(fileIndex: number): SharedHandle {
    const handle = openWhole(this.#path(fileIndex))
    const opened: SharedHandle = { handle, fd: undefined, users: 0, isDropped: false }
    handle.then(
      ({ fd }) => {
        if (!opened.isDropped) opened.fd = fd
      },
      () => {
        if (this.#open.peek(fileIndex) === opened) this.#open.delete(fileIndex)
      }
    )
    this.#open.set(fileIndex, opened)
    return opened
  }

  async writer(fileIndex: number): Promise<FileWriter> {
    const target = this.#path(fileIndex)
    await makeFolders(path.dirname(target))
    // a complete file that turned out damaged is repaired under the name of an incomplete one.
    if ((await sizeOf(`${target}.part`)) === undefined && (await sizeOf(target)) !== undefined) {
      this.#open.delete(fileIndex)
      await rename(target, `${target}.part`)
    }
    const handle = this.#incomplete.get(fileIndex) ?? (await openPartial(`${target}.part`, 0o644))
    this.#incomplete.set(fileIndex, handle)
    return {
      fd: handle.fd,
      write: (offset, bytes) => writeAt(handle, bytes, offset),
      markWritten: () => undefined,
      unmark: () => undefined
    }
  }

  async fileComplete(fileIndex: number): Promise<'ok' | 'wrong'> {
    const target = this.#path(fileIndex)
    const file = this.#layout!.files[fileIndex]!
    const handle = this.#incomplete.get(fileIndex)
    if (handle === undefined) {
      // the file was complete when the torrent started, or it is empty: nothing was written.
      if (file.lengthBytes === 0 && (await sizeOf(target)) === undefined) {
        await makeFolders(path.dirname(target))
        await (await open(target, 'wx')).close()
      } else if ((await sizeOf(target)) === undefined) await rename(`${target}.part`, target)
      return 'ok'
    }
    if ((await handle.stat()).size > file.lengthBytes) await handle.truncate(file.lengthBytes)
    await handle.datasync()
    await rename(`${target}.part`, target)
    this.#incomplete.delete(fileIndex)
    // running reads use this handle, so it stays among the open files instead of being closed here.
    this.#open.set(fileIndex, { handle: Promise.resolve(handle), fd: handle.fd, users: 0, isDropped: false })
    return 'ok'
  }

  async close(): Promise<void> {
    const files = [...this.#open.values()]
    this.#open.clear()
    await Promise.all(files.map(shut))
    await Promise.all([...this.#incomplete.values()].map((handle) => handle.close()))
    this.#incomplete.clear()
  }
}

/** A second call waits for the first. */
const shut = ({ handle }: SharedHandle): Promise<void> => handle.then((open) => open.close()).catch(() => undefined)

function readAt(handle: FileHandle, target: Uint8Array, offset: number): Promise<number> {
  return quickReads.run(
    () => readSync(handle.fd, target, 0, target.length, offset),
    async () => (await handle.read(target, 0, target.length, offset)).bytesRead
  )
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    return (await stat(file)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new SwarmError('E_STORAGE', 'stat', `cannot look at ${file}`, { cause: error })
  }
}

function openWhole(file: string): Promise<FileHandle> {
  return openRegular(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return openRegular(`${file}.part`)
    throw error
  })
}
