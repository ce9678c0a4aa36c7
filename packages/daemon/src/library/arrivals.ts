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

  /** The partial blob has become a blob. */
  async committed(digest: Sha256Digest): Promise<void> {
    await this.#write(digest, { from: (await this.#read(digest))?.from ?? [UNKNOWN], committed: true })
  }

  /** Whether all bytes that arrived came from one source: of the blob, or else of its partial. */
  async isAlone(digest: Sha256Digest, source: string, { isBlob }: { readonly isBlob: boolean }): Promise<boolean> {
    const arrival = await this.#read(digest)
    if (arrival === undefined || (isBlob && !arrival.committed)) return false
    return arrival.from.length === 1 && arrival.from[0] === source
  }

  /** Whether another import than a pinned one has begun to fetch it. */
  async has(digest: Sha256Digest): Promise<boolean> {
    return (await this.#read(digest)) !== undefined
  }

  noted(): Promise<Sha256Digest[]> {
    return this.#notes.digests(listFolderIfPresent)
  }

  /** Drops notes: an artifact has the blobs now, and its record says where they came from. */
  async settle(digests: Iterable<Sha256Digest>): Promise<void> {
    for (const digest of digests) await this.#notes.remove(recordName(digest)).finally(() => this.#changes++)
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
