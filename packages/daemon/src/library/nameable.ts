import type { DiskBlobStore } from '@svc/cas'
import { MAX_DOCUMENT_BYTES, parseCompanions, parseIndex, parseManifest, parseRecord } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { artifactOf } from './artifact-record.ts'
import { readWholeBlob } from './small-blob.ts'
import type { UnreadableStateError } from './strict.ts'

/** Artifacts that are wanted, with the distribution records that indexes name for them. */
export type WantedArtifacts = Map<Sha256Digest, Set<Sha256Digest>>

export function want(wanted: WantedArtifacts, manifestDigest: Sha256Digest, record?: Sha256Digest): void {
  const records = wanted.get(manifestDigest) ?? new Set()
  wanted.set(manifestDigest, record === undefined ? records : records.add(record))
}

/** What a blob is that a record of the state may name. */
type Kind =
  | { readonly is: 'index'; readonly members: readonly { manifest: Sha256Digest; distribution: Sha256Digest }[] }
  | { readonly is: 'manifest' | 'torrent' | 'other' }
  | { readonly is: 'record'; readonly of: Sha256Digest }
  | { readonly is: 'companions'; readonly files: readonly Sha256Digest[] }

const OTHER: Kind = { is: 'other' }
/** The largest info dictionary of a BitTorrent v1 torrent. */
const MAX_TORRENT_BYTES = 10_000_000
const HEAD_BYTES = 16

/** What records could name that cannot be read, judged by what is in the store (spec disk.20). */
export class Nameable {
  readonly #store: DiskBlobStore
  /** A blob never changes what it is. */
  readonly #kinds = new Map<Sha256Digest, Kind>()

  constructor(store: DiskBlobStore) {
    this.#store = store
  }

  /**
   * A repository could name any index, a view any manifest, and an artifact's record its manifest, its distribution record, any companions,
   * and whatever a BitTorrent v1 torrent is seeded with.
   * @param known blobs that are needed anyway @returns artifacts, and blobs beside theirs
   */
  async of(
    unreadable: readonly UnreadableStateError[],
    known: ReadonlySet<Sha256Digest>
  ): Promise<{ readonly artifacts: WantedArtifacts; readonly blobs: ReadonlySet<Sha256Digest> }> {
    const files = unreadable.map(({ file }) => file)
    const hasRepo = files.some((file) => file.startsWith('state/repos/'))
    const hasView = files.some((file) => file.startsWith('state/views/'))
    const own = new Set(files.flatMap((file) => artifactOf(file) ?? []))
    const artifacts: WantedArtifacts = new Map([...own].map((digest) => [digest, new Set()]))
    const blobs = new Set<Sha256Digest>()
    const all: Sha256Digest[] = []
    let hasTorrent = false
    for await (const { digest, sizeBytes } of this.#store.list()) {
      all.push(digest)
      if (known.has(digest) || sizeBytes > MAX_TORRENT_BYTES) continue
      const kind = await this.#kindOf(digest)
      switch (kind.is) {
        case 'index':
          if (!hasRepo) break
          blobs.add(digest)
          for (const { manifest, distribution } of kind.members) want(artifacts, manifest, distribution)
          break
        case 'manifest':
          if (hasView) want(artifacts, digest)
          break
        case 'record':
          if (own.has(kind.of)) want(artifacts, kind.of, digest)
          break
        case 'companions':
          if (own.size > 0) for (const each of [digest, ...kind.files]) blobs.add(each)
          break
        case 'torrent':
          hasTorrent = true
      }
    }
    // which files it was seeded with, nobody can tell
    if (own.size > 0 && hasTorrent) for (const digest of all) blobs.add(digest)
    return { artifacts, blobs }
  }

  async #kindOf(digest: Sha256Digest): Promise<Kind> {
    const kind = this.#kinds.get(digest) ?? (await this.#read(digest))
    this.#kinds.set(digest, kind)
    return kind
  }

  async #read(digest: Sha256Digest): Promise<Kind> {
    const reader = await this.#store.open(digest)
    try {
      const head = new Uint8Array(Math.min(HEAD_BYTES, reader.sizeBytes))
      await reader.read(head, 0)
      const text = Buffer.from(head).toString('latin1')
      if (/^d[1-9][0-9]{0,3}:/.test(text)) return { is: 'torrent' }
      if (!text.startsWith('{') || reader.sizeBytes > MAX_DOCUMENT_BYTES) return OTHER
      return kindOf(await readWholeBlob(reader))
    } finally {
      await reader.close()
    }
  }
}

function kindOf(bytes: Uint8Array): Kind {
  const index = tried(() => parseIndex(bytes))
  if (index !== undefined) return { is: 'index', members: index.members }
  const record = tried(() => parseRecord(bytes))
  if (record !== undefined) return { is: 'record', of: record.manifestDigest }
  const companions = tried(() => parseCompanions(bytes))
  if (companions !== undefined) return { is: 'companions', files: companions.files.map(({ digest }) => digest) }
  return tried(() => parseManifest(bytes)) === undefined ? OTHER : { is: 'manifest' }
}

function tried<T>(parse: () => T): T | undefined {
  try {
    return parse()
  } catch {
    return undefined
  }
}
