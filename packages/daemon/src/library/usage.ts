import { readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import type { Clock, Timer } from '@svc/internal-clock'
import { makeFolders } from '@svc/internal-files'
import { isDigest, type Sha256Digest } from '@svc/ref'

const FLUSH_MS = 60_000
const MAX_BYTES = 64 << 20

/** When each artifact was last requested: only a hint, kept in `cache/` without a sync, and harmless to lose. */
export class Usage {
  readonly #clock: Clock
  readonly #file: string
  readonly #at: Map<Sha256Digest, number>
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()

  readonly #mayWrite: () => void

  private constructor(clock: Clock, file: string, at: Map<Sha256Digest, number>, mayWrite: () => void) {
    this.#clock = clock
    this.#mayWrite = mayWrite
    this.#file = file
    this.#at = at
  }

  static async open(store: Pick<DiskBlobStore, 'root' | 'requireRoot'>, clock: Clock): Promise<Usage> {
    const file = join(store.root, 'cache', 'last-used.json')
    const at = new Map<Sha256Digest, number>()
    try {
      const bytes = await readFile(file)
      const value: unknown = bytes.length <= MAX_BYTES ? JSON.parse(bytes.toString('utf8')) : {}
      for (const [digest, seconds] of Object.entries(value ?? {}))
        if (isDigest(digest) && Number.isSafeInteger(seconds)) at.set(digest, seconds as number)
    } catch {
      // absent or damaged: start empty
    }
    return new Usage(clock, file, at, () => store.requireRoot())
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
        this.#mayWrite()
        await makeFolders(dirname(this.#file), 0o700)
        await writeFile(`${this.#file}.tmp`, text, { mode: 0o600 })
        await rename(`${this.#file}.tmp`, this.#file)
      })
      .catch(() => undefined)
  }
}
