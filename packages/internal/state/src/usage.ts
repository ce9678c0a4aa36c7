import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import type { Clock, Timer } from '@svc/internal-clock'
import { makeFolders, nodeFilePort, replaceFile } from '@svc/internal-files'
import { isDigest, type Sha256Digest } from '@svc/ref'

const FLUSH_MS = 60_000
const MAX_BYTES = 64 << 20

type StoreRoot = Pick<DiskBlobStore, 'root' | 'requireRoot'>

/** When each artifact was last requested: only a hint, kept in `cache/` without a sync, and harmless to lose. */
export class Usage {
  readonly #store: StoreRoot
  readonly #clock: Clock
  readonly #file: string
  /** In Unix seconds. */
  readonly #at = new Map<Sha256Digest, number>()
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()

  private constructor(store: StoreRoot, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#file = join(store.root, 'cache', 'last-used.json')
  }

  static async open(store: StoreRoot, clock: Clock): Promise<Usage> {
    const usage = new Usage(store, clock)
    try {
      const bytes = await readFile(usage.#file)
      const value: unknown = bytes.length <= MAX_BYTES ? JSON.parse(bytes.toString('utf8')) : {}
      for (const [digest, seconds] of Object.entries(value ?? {}))
        if (isDigest(digest) && Number.isSafeInteger(seconds)) usage.#at.set(digest, seconds as number)
    } catch {
      // absent or damaged: start empty
    }
    return usage
  }

  note(manifestDigest: Sha256Digest): void {
    this.#at.set(manifestDigest, Math.floor(this.#clock.now() / 1000))
    this.#timer ??= this.#clock.after(FLUSH_MS, () => this.#flush())
  }

  /** UTC, RFC 3339; undefined if it was never requested. */
  lastUsedAt(manifestDigest: Sha256Digest): string | undefined {
    const seconds = this.#at.get(manifestDigest)
    return seconds === undefined ? undefined : new Date(seconds * 1000).toISOString()
  }

  forget(manifestDigest: Sha256Digest): void {
    this.#at.delete(manifestDigest)
  }

  async close(): Promise<void> {
    if (this.#timer !== undefined) this.#flush()
    await this.#writing
  }

  #flush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const text = JSON.stringify(Object.fromEntries(this.#at))
    this.#writing = this.#writing
      .then(async () => {
        this.#store.requireRoot()
        const temporaryFolder = join(this.#store.root, 'cache', 'tmp')
        await makeFolders(temporaryFolder, 0o700)
        await replaceFile(nodeFilePort, this.#file, Buffer.from(text), { temporaryFolder, durable: false })
      })
      .catch(() => undefined)
  }
}
