import { listFolderIfPresent } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { type RecordKind, recordName, StateRecords } from './record.ts'
import type { ReplacedFiles } from './replace.ts'
import { bool, listOf, text, UnreadableStateError } from './strict.ts'

interface ArrivalRecord {
  /** Sources whose bytes are in the partial blob, or were when it became a blob. */
  readonly from: readonly string[]
  /** It became a blob, through the last of them. */
  readonly committed: boolean
}

/** Stands for unknown sources. */
const UNKNOWN = 'unknown'

/**
 * Where the bytes of partial blobs came from, and of blobs that an unfinished import left (spec add.37). Without its
 * note, or with a damaged one, a blob is unproven, never public.
 */
export class Arrivals {
  readonly #notes: StateRecords<ArrivalRecord>
  /** Blobs that are being made of partial ones. */
  readonly #ending = new Map<Sha256Digest, Promise<unknown>>()
  #changes = 0

  constructor(root: string, files: ReplacedFiles) {
    this.#notes = new StateRecords(root, files, ARRIVAL)
  }

  /** Increases with every change. */
  get changes(): number {
    return this.#changes
  }

  /** Call this before a source's bytes go into a partial blob. */
  async begin(digest: Sha256Digest, source: string, { isEmpty }: { readonly isEmpty: boolean }): Promise<void> {
    const before = isEmpty ? [] : ((await this.#read(digest))?.from ?? [UNKNOWN])
    await this.#write(digest, { from: [...new Set([...before, source])], committed: false })
  }

  /**
   * Makes a blob of its partial one, and notes that. The blob is there before its note: {@link Arrivals.sources} waits
   * for the note.
   */
  async commit<T extends { readonly existed: boolean }>(digest: Sha256Digest, commit: () => Promise<T>): Promise<T> {
    const ended = commit().then(async (result) => {
      if (!result.existed) await this.committed(digest)
      return result
    })
    const ending = ended
      .catch(() => undefined)
      .then(() => {
        if (this.#ending.get(digest) === ending) this.#ending.delete(digest)
      })
    this.#ending.set(digest, ending)
    return ended
  }

  /** The partial blob has become a blob. */
  async committed(digest: Sha256Digest): Promise<void> {
    await this.#write(digest, { from: (await this.#read(digest))?.from ?? [UNKNOWN], committed: true })
  }

  /** The sources of all bytes that arrived: of the blob, or else of its partial. */
  async sources(digest: Sha256Digest, { isBlob }: { readonly isBlob: boolean }): Promise<readonly string[]> {
    await this.#ending.get(digest)
    const arrival = await this.#read(digest)
    return arrival === undefined || (isBlob && !arrival.committed) ? [UNKNOWN] : arrival.from
  }

  /** Whether all bytes that arrived came from one source: of the blob, or else of its partial. */
  async isAlone(digest: Sha256Digest, source: string, of: { readonly isBlob: boolean }): Promise<boolean> {
    const from = await this.sources(digest, of)
    return from.length === 1 && from[0] === source
  }

  noted(): Promise<Sha256Digest[]> {
    return this.#notes.digests(listFolderIfPresent)
  }

  /** Drops notes: an artifact has the blobs now, and its record says where they came from. */
  async settle(digests: Iterable<Sha256Digest>): Promise<void> {
    for (const digest of digests) await this.#notes.remove(recordName(digest)).finally(() => this.#changes++)
  }

  /** {@link settle} for those that a source had a part in. */
  async settleFrom(source: string, digests: Iterable<Sha256Digest>): Promise<void> {
    for (const digest of digests) if ((await this.#read(digest))?.from.includes(source)) await this.settle([digest])
  }

  async #read(digest: Sha256Digest): Promise<ArrivalRecord | undefined> {
    try {
      return await this.#notes.read(recordName(digest))
    } catch (error) {
      if (!(error instanceof UnreadableStateError)) throw error
      return { from: [UNKNOWN], committed: false }
    }
  }

  #write(digest: Sha256Digest, arrival: ArrivalRecord): Promise<void> {
    return this.#notes.write(recordName(digest), arrival).finally(() => this.#changes++)
  }
}

const ARRIVAL: RecordKind<ArrivalRecord> = {
  folder: 'arrivals',
  shape: { from: listOf(text), committed: bool },
  decode: (record) => record,
  encode: (record) => record
}
