import { type IndexMember, parseRecord } from '@svc/manifest'
import { type Sha256Digest, tryParseDigest } from '@svc/ref'
import type { ArtifactState } from './artifacts.ts'
import { addListed, companionBlobs } from './companions.ts'
import { isEvictable } from './eviction.ts'
import { LibraryError } from './library-error.ts'
import { Revised } from './revised.ts'
import { readSmallBlob } from './small-blob.ts'
import type { StoreState } from './state.ts'
import type { OnUnreadable } from './strict.ts'
import type { Views } from './views.ts'

/** Who keeps an artifact. */
export interface ArtifactHolder {
  readonly kind: 'name' | 'tag' | 'pin' | 'view' | 'job' | 'use'
  /** The name, the tag, the path of the view or the id of the operation; absent for `pin` and `use`. */
  readonly what?: string
}

export interface NeededDeps extends Pick<StoreState, 'repos' | 'documents' | 'artifacts'> {
  /** Without `list` where nothing is removed. */
  readonly store: Pick<StoreState['store'], 'stat' | 'open'> & Partial<Pick<StoreState['store'], 'list'>>
  /** These hold artifacts as names and pins do (spec add.13). */
  readonly views: Pick<Views, 'changes' | 'held' | 'companionsAt'>
}

/** Artifacts that are wanted, with the distribution records that indexes name for them. */
type WantedArtifacts = Map<Sha256Digest, Set<Sha256Digest>>

function want(wanted: WantedArtifacts, manifestDigest: Sha256Digest, record?: Sha256Digest): void {
  const records = wanted.get(manifestDigest) ?? new Set()
  wanted.set(manifestDigest, record === undefined ? records : records.add(record))
}

interface KnownManifests {
  readonly needed: ReadonlySet<Sha256Digest>
  readonly given: ReadonlySet<Sha256Digest>
}

/**
 * What the state needs: artifacts that an index, a tag, a pinned import or a holder names, and all blobs of these.
 * Computed from the state alone, so it is right after any crash.
 */
export class Needed {
  readonly #deps: NeededDeps
  readonly #manifests = new Revised<KnownManifests>()

  constructor(deps: NeededDeps) {
    this.#deps = deps
  }

  /** Increases with every change of the state; results are valid while it is unchanged. */
  get revision(): number {
    const { repos, artifacts, views } = this.#deps
    return repos.changes + artifacts.changes + views.changes
  }

  /** Unreadable state counts as no need: this decides only what is announced, not what is deleted. */
  async has(manifestDigest: Sha256Digest): Promise<boolean> {
    return (await this.#known()).needed.has(manifestDigest)
  }

  /**
   * Whether names permit sharing it: a removed or replaced artifact leaves the swarm, though a view keeps its bytes
   * (spec add.13).
   */
  async isGiven(manifestDigest: Sha256Digest): Promise<boolean> {
    return (await this.#known()).given.has(manifestDigest)
  }

  /** The artifacts that an index, a tag or a pinned import names, as far as it can be read. @throws as {@link blobs} */
  async named(): Promise<ReadonlySet<Sha256Digest>> {
    return new Set((await this.#named(new Set(), { onUnreadable: ignore })).keys())
  }

  /** Who needs an artifact, as far as it can be read. */
  async holdersOf(manifestDigest: Sha256Digest): Promise<ArtifactHolder[]> {
    const { repos, documents, artifacts } = this.#deps
    const holders: ArtifactHolder[] = []
    for await (const { ns, name, state } of repos.list(ignore)) {
      const has = async (index: Sha256Digest | undefined): Promise<IndexMember | undefined> => {
        const { members = [] } = index === undefined ? {} : await documents.index(index).catch(() => ({ members: [] }))
        return members.find(({ manifest }) => manifest === manifestDigest)
      }
      const member = await has(state.index)
      if (member !== undefined) holders.push({ kind: 'name', what: `${ns}/${name}:${member.quant}` })
      for (const [tag, index] of state.tags)
        if (await has(index)) holders.push({ kind: 'tag', what: `${ns}/${name}:${tag}` })
    }
    if ((await artifacts.ifReadable(manifestDigest))?.pinned) holders.push({ kind: 'pin' })
    const views = (await this.#deps.views.held(ignore)).filter(({ manifest }) => manifest === manifestDigest)
    for (const what of new Set(views.map(({ place }) => place))) holders.push({ kind: 'view', what })
    return holders
  }

  #known(): Promise<KnownManifests> {
    return this.#manifests.at(this.revision, () => this.#wantedManifests())
  }

  /**
   * All needed blobs: indexes, manifests, files, records, piece layers, companions, and what BitTorrent v1 swarms are
   * seeded with. The weights of artifacts that are away only where a view shows them. While a record cannot be read,
   * all blobs: it could name any (spec disk.20).
   * @throws LibraryError `E_NO_INDEX`, `E_INVALID_INDEX`, `E_CORRUPTION`: while a document that names others is unreadable, it is
   *   unknown what is needed
   * @param ignored places of holders, and tags as `ns/name:tag`, that do not count
   */
  async blobs(ignored: ReadonlySet<string> = new Set()): Promise<ReadonlySet<Sha256Digest>> {
    const blobs = new Set<Sha256Digest>()
    let isComplete = true
    const onUnreadable = (): void => {
      isComplete = false
    }
    const wanted = await this.#named(blobs, { onUnreadable, ignored })
    const held = (await this.#deps.views.held(onUnreadable)).filter(({ place }) => !ignored.has(place))
    for (const { manifest } of held) want(wanted, manifest)
    // a view needs all files that it shows
    const shown = new Set(held.map(({ manifest }) => manifest))
    for (const place of new Set(held.map((each) => each.place)))
      for (const digest of await this.#deps.views.companionsAt(place))
        await addListed(digest, blobs, this.#deps.documents, { strict: true })
    for (const [manifestDigest, records] of wanted)
      await this.#addArtifact(manifestDigest, records, blobs, { strict: true, whole: shown.has(manifestDigest) })
    if (!isComplete) for await (const { digest } of this.#deps.store.list!()) blobs.add(digest)
    return blobs
  }

  /** The blobs of one artifact, as far as known here. */
  async blobsOf(manifestDigest: Sha256Digest): Promise<ReadonlySet<Sha256Digest>> {
    const blobs = new Set<Sha256Digest>()
    await this.#addArtifact(manifestDigest, new Set(), blobs)
    return blobs
  }

  /**
   * The blobs of an index and of its members, as far as known here. @throws LibraryError `E_NO_INDEX`, `E_INVALID_INDEX`
   */
  async blobsOfIndex(digest: Sha256Digest): Promise<ReadonlySet<Sha256Digest>> {
    const blobs = new Set([digest])
    for (const { manifest, distribution } of (await this.#deps.documents.index(digest)).members)
      await this.#addArtifact(manifest, new Set([distribution]), blobs)
    return blobs
  }

  async #wantedManifests(): Promise<KnownManifests> {
    const named = await this.#named(new Set(), { onUnreadable: ignore, onInvalid: ignore })
    const held = await this.#deps.views.held(ignore)
    const placed = held.filter(({ managed }) => !managed)
    return {
      needed: new Set([...named.keys(), ...held.map(({ manifest }) => manifest)]),
      given: new Set([...named.keys(), ...placed.map(({ manifest }) => manifest)])
    }
  }

  async #named(
    indexes: Set<Sha256Digest>,
    {
      onUnreadable,
      onInvalid,
      ignored
    }: {
      readonly onUnreadable: OnUnreadable
      readonly onInvalid?: (error: LibraryError) => void
      readonly ignored?: ReadonlySet<string>
    }
  ): Promise<WantedArtifacts> {
    const { repos, documents, artifacts } = this.#deps
    const wanted: WantedArtifacts = new Map()
    for await (const { ns, name, state } of repos.list(onUnreadable)) {
      const tagged = [...state.tags].filter(([tag]) => ignored?.has(`${ns}/${name}:${tag}`) !== true)
      for (const digest of [state.index, ...tagged.map(([, index]) => index)]) {
        if (digest === undefined || indexes.has(digest)) continue
        indexes.add(digest)
        try {
          for (const { manifest, distribution } of (await documents.index(digest, { scan: true })).members)
            want(wanted, manifest, distribution)
        } catch (error) {
          if (onInvalid === undefined || !(error instanceof LibraryError)) throw error
          onInvalid(error)
        }
      }
    }
    for await (const { manifestDigest, pinned } of artifacts.list(onUnreadable, { cached: true }))
      if (pinned) want(wanted, manifestDigest)
    return wanted
  }

  async #addArtifact(
    manifestDigest: Sha256Digest,
    records: ReadonlySet<Sha256Digest>,
    blobs: Set<Sha256Digest>,
    { strict = false, whole = true }: { readonly strict?: boolean; readonly whole?: boolean } = {}
  ): Promise<void> {
    const { documents, artifacts } = this.#deps
    blobs.add(manifestDigest)
    const state = await artifacts.ifReadable(manifestDigest)
    for (const record of [...records, ...(state?.record === undefined ? [] : [state.record])])
      await this.#addRecord(record, blobs, strict)
    const isAway = state?.away === true && !whole
    for (const digest of await companionBlobs(state, documents, { strict })) blobs.add(digest)
    const manifest = await documents.manifest(manifestDigest)
    if (manifest === undefined && strict) {
      throw new LibraryError(
        'E_CORRUPTION',
        `the manifest ${manifestDigest} is missing, so the blobs that it needs are unknown; import the model again, or remove its name`
      )
    }
    const files = manifest?.files ?? []
    const gone = new Set(isAway ? files.filter(isEvictable).map(({ digest }) => digest) : [])
    for (const digest of [...files.map((file) => file.digest), ...(state === undefined ? [] : v1Blobs(state))])
      if (!gone.has(digest)) blobs.add(digest)
  }

  async #addRecord(record: Sha256Digest, blobs: Set<Sha256Digest>, strict: boolean): Promise<void> {
    if (blobs.has(record)) return
    blobs.add(record)
    const bytes = await readSmallBlob(this.#deps.store, record)
    if (bytes === undefined) return
    try {
      blobs.add(parseRecord(bytes).torrent.pieceLayersDigest)
    } catch (cause) {
      const what = `the distribution record ${record} cannot be read, so the blobs that it needs are unknown`
      if (strict) throw new LibraryError('E_CORRUPTION', `${what}: ${(cause as Error).message}`, { cause })
    }
  }
}

const ignore = (): void => undefined

/** The blobs that a BitTorrent v1 swarm is seeded with: all digests in that source's data. */
function v1Blobs({ source }: ArtifactState): Sha256Digest[] {
  const { info, files } = source.bittorrentV1 ?? {}
  return [info, ...(Array.isArray(files) ? files : [])]
    .map((value) => (typeof value === 'string' ? tryParseDigest(value) : undefined))
    .filter((digest) => digest !== undefined)
}
