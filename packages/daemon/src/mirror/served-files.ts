import { hash } from 'node:crypto'
import type { Clock } from '@svc/internal-clock'
import { Gate } from '@svc/internal-concurrency'
import { digestFromBytes, digestFromHex, type Sha256Digest } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import type { ComingModels } from '../library/coming.ts'
import type { Documents } from '../library/documents.ts'
import type { Views } from '../library/views.ts'
import type { Log } from '../log.ts'
import { hashFile } from './file-hash.ts'

/** A file as runtimes see it, and the location of its bytes. */
export interface ServedFile {
  /** The artifact it belongs to. */
  readonly manifest: Sha256Digest
  readonly name: string
  readonly sizeBytes: number
  readonly digest: Sha256Digest
  /** Whether the store has it as a blob; otherwise it is a small file in the view, unpacked from a tar, or `bytes`. */
  readonly isBlob: boolean
  /** Its path in the view. */
  readonly path: string
  /** The content of a licence text, which the manifest itself contains. */
  readonly bytes?: Uint8Array
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
  readonly views: Pick<Views, 'lent'>
  readonly documents: Documents
  readonly coming: ComingModels
  readonly log: Log
}

/**
 * The files of artifacts under their real names; it does not check who may see them. They come from a view that is
 * made at the first request, and protects nothing from collection.
 */
export class ServedFiles {
  readonly #deps: ServedFilesDeps
  readonly #known = new LRUCache<Sha256Digest, Promise<readonly ServedFile[]>>({
    max: MAX_KNOWN,
    // if this fails, the view is reused, or deleted with the cache
    dispose: (_files, manifest, reason) => {
      if (reason === 'evict') this.#deps.views.lent.end(manifest).catch(() => undefined)
    }
  })
  readonly #lacking = new Map<Sha256Digest, Promise<readonly ServedFile[]>>()
  readonly #making = new Gate(MADE_AT_ONCE)

  constructor(deps: ServedFilesDeps) {
    this.#deps = deps
    deps.coming.listen((standIn) => {
      this.forget(standIn)
      deps.views.lent.end(standIn).catch(() => undefined)
    })
  }

  /**
   * The files of an artifact of which only the unpacked ones are here, under the names and in the order of {@link of}.
   * @throws as {@link of}
   */
  lacking(manifest: Sha256Digest): Promise<readonly ServedFile[]> {
    const known = this.#lacking.get(manifest)
    if (known !== undefined) return known
    const found = this.#making.run(undefined, () => this.#read(manifest, true))
    this.#lacking.set(manifest, found)
    // for concurrent callers only: more of it may be here later
    const forget = (): void => void this.#lacking.delete(manifest)
    found.then(forget, forget)
    return found
  }

  /**
   * The files of an artifact in the order of its manifest. @throws the errors of making a view: missing or damaged
   * blobs
   */
  of(manifest: Sha256Digest): Promise<readonly ServedFile[]> {
    const known = this.#known.get(manifest)
    if (known !== undefined) return known
    const found = this.#making.run(undefined, () => this.#read(manifest))
    this.#known.set(manifest, found)
    found.catch((error: unknown) => {
      this.#deps.log.warn({ err: error, manifest }, 'a mirror cannot show an artifact')
      this.#deps.clock.after(RETRY_MS, () => {
        if (this.#known.peek(manifest) === found) this.#known.delete(manifest)
      })
    })
    return found
  }

  /** Whether {@link of} has cached it, so that it was complete. */
  isKnown(manifest: Sha256Digest): boolean {
    return this.#known.peek(manifest) !== undefined
  }

  /** Discards cached facts about an artifact: its view may be gone. */
  forget(manifest: Sha256Digest): void {
    this.#known.delete(manifest)
  }

  async #read(manifest: Sha256Digest, mayLack = false): Promise<ServedFile[]> {
    const { views, documents, coming } = this.#deps
    const model = coming.get(manifest)
    const shown = await (model === undefined ? views.lent.lend(manifest, mayLack) : views.lent.lendComing(model))
    const files: ServedFile[] = []
    for (const { name, path, sizeBytes, kind, role, digest: blob } of shown) {
      const digest = blob ?? (await digestOf(path, sizeBytes))
      files.push({ manifest, name, path, sizeBytes, kind, role, digest, isBlob: blob !== undefined })
    }
    const names = new Set(files.map(({ name }) => name))
    const { annotations = {} } = model?.manifest ?? (await documents.manifest(manifest)) ?? {}
    const licences = licencesOf(manifest, annotations)
    return [...files, ...licences.filter(({ name }) => !names.has(name))]
  }
}

const LICENCE_FILE = 'svc.license.file.'

function licencesOf(manifest: Sha256Digest, annotations: Readonly<Record<string, string>>): ServedFile[] {
  const texts = Object.entries(annotations).filter(([key]) => key.startsWith(LICENCE_FILE))
  return texts.map(([key, text]) => {
    const bytes = Buffer.from(text)
    const digest = digestFromHex(hash('sha256', bytes))
    const inMemory = { bytes, path: '', isBlob: false, kind: 'licence', role: undefined }
    return { manifest, name: key.slice(LICENCE_FILE.length), sizeBytes: bytes.length, digest, ...inMemory }
  })
}

async function digestOf(path: string, sizeBytes: number): Promise<Sha256Digest> {
  if (sizeBytes > MAX_UNPACKED_BYTES) throw new Error(`${path} is too large to be unpacked from a tar`)
  return digestFromBytes(await hashFile(path, 'sha256'))
}
