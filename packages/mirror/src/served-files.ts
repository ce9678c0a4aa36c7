import type { Clock } from '@svc/internal-clock'
import { Gate } from '@svc/internal-concurrency'
import type { ArtifactFolder, ComingModels, Log, Views } from '@svc/library/parts'
import { digestFromBytes, parseDigest, type Sha256Digest } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import { hashFile } from './file-hash.ts'

/** A file as runtimes see it, and the location of its bytes. */
export interface ServedFile {
  /** The artifact it belongs to. */
  readonly manifest: Sha256Digest
  readonly name: string
  readonly sizeBytes: number
  readonly digest: Sha256Digest
  /** Whether the store has it as a blob; otherwise it is a small file in the view, from a document or a tar. */
  readonly isBlob: boolean
  /** Its path in the view. */
  readonly path: string
  readonly kind: string
  readonly role: string | undefined
}

/** Limit of an unpacked file, which is a configuration or a tokenizer. */
const MAX_UNPACKED_BYTES = 256 << 20
const MAX_KNOWN = 1_000
/** One thread makes all views: the owner's wait behind at most this many for strangers. */
const MADE_AT_ONCE = 2

/** A view that failed is not tried again within this time. */
const RETRY_MS = 2_000

export interface ServedFilesDeps {
  readonly clock: Clock
  readonly views: { readonly lent: Pick<Views['lent'], 'lend' | 'lendComing' | 'end' | 'listen'> }
  readonly coming: ComingModels
  readonly log: Log
}

/**
 * The files of artifacts under their real names; it does not check who may see them. They come from a view that is
 * made at the first request, and protects nothing from collection.
 */
export class ServedFiles {
  readonly #deps: ServedFilesDeps
  readonly #known = new LRUCache<string, Promise<readonly ServedFile[]>>({
    max: MAX_KNOWN,
    // if this fails, the view is reused, or deleted with the cache
    dispose: (_files, key, reason) => {
      if (reason === 'evict') this.#deps.views.lent.end(manifestOf(key)).catch(() => undefined)
    }
  })
  readonly #lacking = new Map<string, Promise<readonly ServedFile[]>>()
  readonly #making = new Gate(MADE_AT_ONCE)

  constructor(deps: ServedFilesDeps) {
    this.#deps = deps
    deps.views.lent.listen((manifest) => this.forget(manifest))
    deps.coming.listen((standIn) => {
      this.forget(standIn)
      deps.views.lent.end(standIn).catch(() => undefined)
    })
  }

  /**
   * The files of an artifact of which only the unpacked ones are here, under the names and in the order of {@link of}.
   * @throws as {@link of}
   */
  lacking(shown: ArtifactFolder): Promise<readonly ServedFile[]> {
    const key = keyOf(shown)
    const known = this.#lacking.get(key)
    if (known !== undefined) return known
    const found = this.#making.run(undefined, () => this.#read(shown, true))
    this.#lacking.set(key, found)
    // for concurrent callers only: more of it may be here later
    const forget = (): void => void this.#lacking.delete(key)
    found.then(forget, forget)
    return found
  }

  /**
   * The files of an artifact in the order of its manifest. @throws the errors of making a view: missing or damaged
   * blobs
   */
  of(shown: ArtifactFolder): Promise<readonly ServedFile[]> {
    const key = keyOf(shown)
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const found = this.#making.run(undefined, () => this.#read(shown))
    this.#known.set(key, found)
    found.catch((error: unknown) => {
      this.#deps.log.warn({ err: error, ...shown }, 'a mirror cannot show an artifact')
      this.#deps.clock.after(RETRY_MS, () => {
        if (this.#known.peek(key) === found) this.#known.delete(key)
      })
    })
    return found
  }

  /** Whether {@link of} has cached it, so that it was complete. */
  isKnown(shown: ArtifactFolder): boolean {
    return this.#known.peek(keyOf(shown)) !== undefined
  }

  /** Discards cached facts about an artifact: its views may be gone. */
  forget(manifest: Sha256Digest): void {
    for (const key of this.#known.keys()) if (manifestOf(key) === manifest) this.#known.delete(key)
  }

  async #read(shown: ArtifactFolder, mayLack = false): Promise<ServedFile[]> {
    const { views, coming } = this.#deps
    const { manifest } = shown
    const model = coming.get(manifest)
    const found = await (model === undefined ? views.lent.lend(shown, mayLack) : views.lent.lendComing(model))
    const files: ServedFile[] = []
    for (const { name, path, sizeBytes, kind, role, digest: blob } of found) {
      const digest = blob ?? (await digestOf(path, sizeBytes))
      files.push({ manifest, name, path, sizeBytes, kind, role, digest, isBlob: blob !== undefined })
    }
    return files
  }
}

const keyOf = ({ manifest, companions }: ArtifactFolder): string => `${manifest} ${companions}`
const manifestOf = (key: string): Sha256Digest => parseDigest(key.split(' ', 1)[0]!)

async function digestOf(path: string, sizeBytes: number): Promise<Sha256Digest> {
  if (sizeBytes > MAX_UNPACKED_BYTES) throw new Error(`${path} is too large to be unpacked from a tar`)
  return digestFromBytes(await hashFile(path, 'sha256'))
}
