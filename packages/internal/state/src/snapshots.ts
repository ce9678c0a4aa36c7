import { randomBytes } from 'node:crypto'
import { type FileHandle, open, readFile, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type Lease, withLease } from '@svc/cas'
import { type Timer, timestampOf } from '@svc/internal-clock'
import { listFolder, makeFolders } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { LibraryError } from './library-error.ts'
import type { Needed } from './needed.ts'
import type { ReplacedFiles } from './replace.ts'
import type { StoreState } from './state.ts'

/** A snapshot whose user does not ask again within this time is released. */
const HOLD_MS = 120_000
/** A backup needs one; a caller with more forgets to release them. */
const MAX_SNAPSHOTS = 8
const BATCH_CHARACTERS = 1 << 20

export interface SnapshotsDeps extends Pick<StoreState, 'clock' | 'store' | 'log'> {
  readonly files: ReplacedFiles
  readonly needed: Needed
  readonly version: string
}

/** One complete state of the store, held for whoever copies it. */
interface SnapshotOfState {
  readonly id: string
  readonly storeId: string
  readonly createdAt: string
  /** A file of JSON lines: the state files of that moment, and the blobs that they need. */
  readonly path: string
  readonly blobs: number
  readonly bytes: number
  /** Blobs that the state names but that are not here: of unfinished models, or lost. */
  readonly missingBlobs: number
  readonly heldUntil: string
}

interface HeldSnapshot {
  readonly answer: Omit<SnapshotOfState, 'heldUntil'>
  readonly release: () => Promise<void>
  timer: Timer
}

/**
 * For backups: the state files of one moment, in which no state is written, and the blobs that they need, which no
 * collection takes while the snapshot is held (spec add.43).
 */
export class Snapshots {
  readonly #deps: SnapshotsDeps
  readonly #kept = new Map<string, HeldSnapshot>()

  constructor(deps: SnapshotsDeps) {
    this.#deps = deps
  }

  /** @throws LibraryError `E_LIMIT` beyond {@link MAX_SNAPSHOTS} */
  async make(): Promise<SnapshotOfState> {
    if (this.#kept.size >= MAX_SNAPSHOTS)
      throw new LibraryError('E_LIMIT', `${MAX_SNAPSHOTS} snapshots are held; release one first`)
    const { store } = this.#deps
    const id = randomBytes(12).toString('hex')
    // swept at the next start, if this process cannot remove it
    const folder = join(store.root, 'cache', 'tmp')
    store.requireRoot()
    await makeFolders(folder, 0o700)
    const path = join(folder, `snapshot-${id}.jsonl`)
    const leases: Lease[] = []
    const release = async (): Promise<void> => {
      for (const lease of leases) lease.release()
      await unlink(path).catch(() => undefined)
    }
    try {
      const facts = await withLease(store, () => this.#write(path, (blobs) => void leases.push(store.lease(blobs))))
      const kept = { answer: { id, ...facts }, release, timer: this.#timer(id) }
      this.#kept.set(id, kept)
      return this.#answer(kept)
    } catch (error) {
      await release()
      throw error
    }
  }

  /** Holds a snapshot for longer. @throws LibraryError `E_NOT_FOUND` */
  hold(id: string): SnapshotOfState {
    const kept = this.#require(id)
    kept.timer.cancel()
    kept.timer = this.#timer(id)
    return this.#answer(kept)
  }

  /** @throws LibraryError `E_NOT_FOUND` */
  async release(id: string): Promise<SnapshotOfState> {
    const kept = this.#require(id)
    kept.timer.cancel()
    this.#kept.delete(id)
    await kept.release()
    return this.#answer(kept)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#kept.keys()].map((id) => this.release(id)))
  }

  #timer(id: string): Timer {
    return this.#deps.clock.after(HOLD_MS, () => void this.release(id))
  }

  #answer({ answer }: HeldSnapshot): SnapshotOfState {
    return { ...answer, heldUntil: timestampOf(this.#deps.clock, HOLD_MS) }
  }

  #require(id: string): HeldSnapshot {
    const kept = this.#kept.get(id)
    if (kept !== undefined) return kept
    throw new LibraryError('E_NOT_FOUND', 'there is no such snapshot: its hold expired, or the daemon restarted')
  }

  async #write(
    path: string,
    hold: (blobs: ReadonlySet<Sha256Digest>) => void
  ): Promise<Omit<SnapshotOfState, 'id' | 'heldUntil'>> {
    const { clock, store, files, version } = this.#deps
    const file = new Lines(await open(path, 'wx', 0o600))
    try {
      const storeId = store.id
      const { createdAt, needed } = await files.frozen(async () => {
        const createdAt = timestampOf(clock)
        await file.add({ svcSnapshot: 1, storeId, createdAt, version })
        await this.#addState(file, '')
        const needed = await this.#neededBlobs()
        hold(needed)
        return { createdAt, needed }
      })
      let [blobs, bytes, missingBlobs] = [0, 0, 0]
      for (const digest of [...needed].sort()) {
        const found = await store.stat(digest)
        if (found === undefined) missingBlobs++
        else {
          blobs++
          bytes += found.sizeBytes
          await file.add({ blob: digest, sizeBytes: found.sizeBytes })
        }
      }
      await file.end()
      return { storeId, createdAt, path, blobs, bytes, missingBlobs }
    } finally {
      await file.close()
    }
  }

  /** All files below `state/`, also those that cannot be read as records, byte for byte. */
  async #addState(file: Lines, below: string): Promise<void> {
    const state = join(this.#deps.store.root, 'state')
    const entries = await listFolder(join(state, below))
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      if (path === 'tmp') continue
      if (entry.isDirectory()) await this.#addState(file, path)
      else if (entry.isFile()) {
        const bytes = await readFile(join(state, path))
        await file.add({ state: path, base64: bytes.toString('base64') })
      }
    }
  }

  /** While the needs are unknown, everything is needed. */
  async #neededBlobs(): Promise<ReadonlySet<Sha256Digest>> {
    const { needed, store, log } = this.#deps
    try {
      return await needed.blobs()
    } catch (error) {
      log.warn({ err: error }, 'a snapshot includes all blobs: those that the state needs cannot be determined')
      const all = new Set<Sha256Digest>()
      for await (const { digest } of store.list()) all.add(digest)
      return all
    }
  }
}

/** JSON lines, written in batches. */
class Lines {
  readonly #file: FileHandle
  #text = ''
  #count = 0

  constructor(file: FileHandle) {
    this.#file = file
  }

  async add(line: object): Promise<void> {
    this.#text += `${JSON.stringify(line)}\n`
    this.#count++
    if (this.#text.length >= BATCH_CHARACTERS) await this.#flush()
  }

  /** The last line says how many there were between the first one and it. */
  async end(): Promise<void> {
    await this.add({ end: this.#count - 1 })
    await this.#flush()
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  async #flush(): Promise<void> {
    const text = this.#text
    this.#text = ''
    await this.#file.writeFile(text)
  }
}
