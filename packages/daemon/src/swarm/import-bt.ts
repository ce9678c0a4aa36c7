import { isPickle, isPickleByName, PICKLE_START_BYTES, refusePickles } from '@svc/classify'
import type { Job } from '@svc/client/protocol'
import {
  type ArtifactImport,
  type CommitContext,
  commitArtifacts,
  type Library,
  LibraryError,
  type Provenance,
  type Room,
  readSmallBlob,
  type SwarmHints,
  storedConfigQuant,
  type TrustRule,
  type Work,
  withheldNotice,
  withMark,
  writeDocument,
  writeRecord
} from '@svc/library/parts'
import { type ArtifactTorrent, type Manifest, type Sealed, torrentOf } from '@svc/manifest'
import type { PieceLayers } from '@svc/metainfo'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { JobOutcome } from '../jobs/job-work.ts'
import { type JobRegistry, UnwantedError } from '../jobs/registry.ts'
import type { ArtifactFetchContext, FetchProgress, FetchRequest } from './artifact-fetch.ts'
import type { PeerDocumentContext, PeerDocumentRequest } from './peer-documents.ts'
import {
  bringCompanions,
  type CompanionsDeps,
  checkBrought,
  fetchCompanions,
  ruleFor,
  type UnclaimedCompanions
} from './pinned-companions.ts'
import type { PinnedImport } from './pinned-import.ts'
import { WebseedDocuments } from './pinned-manifest.ts'
import { requireSpaceFor } from './space.ts'

export interface ImportBtContext extends CommitContext, Pick<Library, 'clock' | 'leafLayers' | 'trust'> {
  readonly room: Pick<Room, 'require'>
  readonly jobs: JobRegistry
}

export interface ImportBtDeps extends ImportBtContext, CompanionsDeps {
  readonly manifestFromPeers: (request: PeerDocumentRequest, context: PeerDocumentContext) => Promise<Uint8Array>
  readonly fetch: (
    request: Pick<FetchRequest, 'torrent' | 'layers' | 'hints' | 'heldManifest'>,
    context: Pick<ArtifactFetchContext, 'signal' | 'onProgress'>
  ) => Promise<readonly string[]>
  readonly joinWhenDone: (manifestDigest: Sha256Digest) => Promise<void>
}

/** Accepts a validated request: identity first, then bytes (spec swarm.14, swarm.15). */
export function startImportBt(request: PinnedImport, deps: ImportBtDeps): Job {
  const { jobs, artifacts } = deps
  const { infohashText: ref, repo, pin, isResumed = false } = request
  const as = repo && formatRepoId(repo)
  return jobs.start(
    { kind: 'import-bt', ref, filesTotal: 1, ...(as !== undefined && { as }), ...(isResumed && { lane: 'demand' }) },
    (job) => new BtImport(request, deps, job).run(),
    // an import that its owner gave up is not resumed for others
    async (aborted) => {
      if (as === undefined || !(aborted instanceof UnwantedError)) return
      await artifacts.endFutureName(pin, as)
      await artifacts.endFutureCompanions(pin, as)
    }
  )
}

type PinnedTorrent = ArtifactTorrent & { readonly manifest: Sealed<Manifest> }

interface NamedIndex {
  readonly indexDigest: Sha256Digest
  readonly quants: string[]
  readonly replaced?: { readonly quant: string; readonly manifest: Sha256Digest }[]
}

class BtImport {
  readonly #request: PinnedImport
  readonly #deps: ImportBtDeps
  readonly #job: Work
  readonly #warnings: string[] = []
  readonly #documents: WebseedDocuments

  constructor(request: PinnedImport, deps: ImportBtDeps, job: Work) {
    this.#request = request
    this.#deps = deps
    this.#job = job
    this.#documents = new WebseedDocuments(deps.reading, request.hints, (message) => this.#warnings.push(message))
  }

  async run(): Promise<JobOutcome> {
    const { pin, infohashText, repo, mayEvict } = this.#request
    const { store, artifacts, trust, fetch, joinWhenDone } = this.#deps
    const { torrent, hints } = await this.#torrent()
    await requireSpaceFor(torrent, this.#deps, { mayEvict: mayEvict === true, signal: this.#job.signal })
    if (hints.webseeds.length > 0) await this.#documents.readListing(pin, this.#job.signal)
    // peers have the layers that no webseed has: the engine asks them
    const layers =
      hints.webseeds.length === 0 ? undefined : await this.#documents.pieceLayers(torrent, this.#job.signal)
    const rule = ruleFor(trust, repo, torrent.manifest.document)
    const checked = rule?.mode === 'require' ? await this.#checked(rule, { torrent, layers, hints }) : undefined
    // from here on ensure can continue it, whatever happens to this job
    await writeDocument(store, torrent.manifest, this.#job.signal)
    await artifacts.record(this.#state())
    if (layers !== undefined) await this.#record(torrent, layers)
    const unwanted = new AbortController()
    const onProgress = (progress: FetchProgress): void => {
      this.#report(torrent, progress)
      void this.#stopUnwanted(unwanted)
    }
    const signal = AbortSignal.any([this.#job.signal, unwanted.signal])
    const warnings = await fetch({ torrent, layers, hints }, { signal, onProgress })
    let named: NamedIndex | undefined
    try {
      await this.#requireNoPickles(torrent.manifest.document)
      const record = layers === undefined ? await this.#record(torrent, layers) : undefined
      named = repo && (await this.#name(repo, torrent, record ?? (await artifacts.read(pin))!.record!))
    } catch (error) {
      // an artifact that did not get its name leaves the swarm
      if (repo !== undefined) await joinWhenDone(pin).catch(() => undefined)
      throw error
    }
    // companions may take long; cancelling the wait keeps the model
    await joinWhenDone(pin)
    const { companions } = this.#request
    const beside =
      companions && (await bringCompanions(companions, this.#request, torrent, this.#deps, this.#job, checked))
    if (rule !== undefined && companions === undefined) this.#warnings.push(trust.refusal(rule).message)
    const all = [...this.#warnings, ...warnings, ...(beside?.warnings ?? []), ...(await this.#withheld(named))]
    const files = torrent.manifest.document.files.length
    this.#job.report({ filesDone: files, filesTotal: files, bytesDone: sizeOf(torrent.manifest.document.files) })
    return {
      manifest: pin,
      result: {
        manifests: [pin],
        infohash: infohashText,
        ...named,
        skipped: 0,
        ...beside?.result,
        ...(all.length > 0 && { warnings: all })
      }
    }
  }

  /**
   * Fetches the model and its companions as blobs without a manifest, of which nothing is given to others. The
   * artifact's record says only who may have the bytes. @throws DaemonError `E_NOT_IMPORTABLE` for what the rule
   * refuses
   */
  async #checked(
    rule: TrustRule,
    { torrent, layers, hints }: Pick<FetchRequest, 'layers' | 'hints'> & { readonly torrent: PinnedTorrent }
  ): Promise<UnclaimedCompanions> {
    const { artifacts, trust, store, clock, fetch } = this.#deps
    const { pin, companions } = this.#request
    if (companions === undefined) throw trust.refusal(rule)
    const { futureName: _, futureCompanions: __, ...state } = this.#state()
    if ((await artifacts.read(pin)) === undefined) await artifacts.record({ ...state, pinned: false })
    const brought = await fetchCompanions(companions, this.#request, this.#deps, this.#job)
    await trust.requireSigned(rule, brought.document.files, { store, clock })
    const onProgress = (progress: FetchProgress): void => this.#report(torrent, progress)
    const request = { torrent, layers, hints, heldManifest: torrent.manifest.bytes }
    await fetch(request, { signal: this.#job.signal, onProgress })
    await checkBrought(rule, torrent.manifest.document, brought, this.#deps, this.#job)
    return brought
  }

  /**
   * The torrent that follows from the pinned manifest, which must be the requested one: nothing else is requested
   * before that is certain.
   */
  async #torrent(): Promise<{
    readonly torrent: PinnedTorrent
    /** Without webseeds if none provided the manifest: they cannot provide the rest either. */
    readonly hints: SwarmHints
  }> {
    const { pin, infohashText } = this.#request
    let { hints } = this.#request
    const { store, documents } = this.#deps
    let bytes = await readSmallBlob(store, pin)
    if (bytes === undefined && hints.webseeds.length > 0) {
      this.#job.report({ message: 'asking the webseeds for the manifest' })
      bytes = await this.#documents.manifest(pin, this.#job.signal)
    }
    if (bytes === undefined && this.#request.manifestFromPeers) {
      const lies: string[] = []
      bytes = await this.#manifestFromPeers((lie) => lies.push(lie))
      hints = { ...hints, webseeds: [] }
      // unusable webseeds no longer matter, but proven bad data does
      this.#warnings.splice(0, this.#warnings.length, ...lies)
    }
    this.#job.report({ message: undefined })
    if (bytes === undefined) {
      throw new DaemonError(
        'E_SOURCE_UNAVAILABLE',
        `no webseed sent the pinned manifest ${pin}: ${this.#warnings.join('; ')}`
      )
    }
    let manifest: Sealed<Manifest>
    let torrent: ArtifactTorrent
    try {
      manifest = { digest: pin, bytes, document: await documents.parse('manifest', bytes) }
      torrent = torrentOf(manifest)
    } catch (cause) {
      if (cause instanceof LibraryError) throw cause
      throw new DaemonError('E_NOT_IMPORTABLE', `the pinned bytes are not a manifest: ${(cause as Error).message}`, {
        cause
      })
    }
    if (torrent.infohashText !== infohashText) {
      throw new DaemonError(
        'E_NOT_IMPORTABLE',
        `the torrent ${infohashText} does not belong to the pin: the pinned manifest implies ${torrent.infohashText}`
      )
    }
    this.#requireAllowed(manifest.document)
    this.#job.report({
      filesTotal: manifest.document.files.length,
      bytesTotal: sizeOf(manifest.document.files),
      manifest: pin
    })
    return { torrent: { ...torrent, manifest }, hints }
  }

  /** @throws LibraryError, ClassifyError `E_NOT_IMPORTABLE` for files that are no model's without their owner's word (spec rec.32) */
  #requireAllowed({ files }: Manifest): void {
    const { opaque } = this.#request
    const names = files.filter(({ kind }) => kind === 'opaque').map(({ name }) => name)
    if (names.length === 0) return
    if (opaque === undefined) {
      const what = `the artifact has files that are imported as they are, such as ${JSON.stringify(names[0])}`
      throw new LibraryError('E_NOT_IMPORTABLE', `${what}; "recognise": "opaque" allows them`, {
        candidates: ['opaque']
      })
    }
    if (!opaque.allowsPickles) refusePickles(names.filter(isPickleByName))
  }

  /** The same, once the bytes are here. */
  async #requireNoPickles({ files }: Manifest): Promise<void> {
    if (this.#request.opaque?.allowsPickles === true) return
    const { store } = this.#deps
    for (const { kind, name, digest, size } of files) {
      if (kind !== 'opaque') continue
      const reader = await store.open(digest)
      try {
        const start = new Uint8Array(Math.min(size, PICKLE_START_BYTES))
        const count = await reader.read(start, 0)
        if (isPickle(name, start.subarray(0, count))) refusePickles([name])
      } finally {
        await reader.close()
      }
    }
  }

  async #manifestFromPeers(onLie: (peer: string) => void): Promise<Uint8Array> {
    const { pin, infohashText, hints } = this.#request
    const { artifacts, manifestFromPeers, isWithheld } = this.#deps
    const before = await artifacts.standing(pin)
    const quiet = isWithheld({ provenance: this.#provenance }) || (before !== undefined && isWithheld(before))
    try {
      return await manifestFromPeers(
        { pin, infohashText, hints, quiet },
        { signal: this.#job.signal, onProgress: (progress) => this.#job.report(progress), onLie }
      )
    } catch (cause) {
      if (!(cause instanceof LibraryError) || cause.code !== 'E_SOURCE_UNAVAILABLE' || this.#warnings.length === 0)
        throw cause
      throw new DaemonError(cause.code, `${cause.message}; ${this.#warnings.join('; ')}`, { cause })
    }
  }

  /** Documents that require a key are restricted (spec add.33); for files, the first signed request says so. */
  get #provenance(): Provenance {
    const facts: Provenance = this.#documents.isSigned
      ? { access: 'restricted', by: 'webseed-key' }
      : { access: 'public' }
    const marked = this.#documents.markedBy !== undefined ? { marked: true as const } : {}
    return withMark({ ...facts, ...marked }, this.#request.private, this.#deps.clock)
  }

  /** A web server may send the mark by habit: the notice says so, and how to share the model anyway. */
  async #withheld(named: NamedIndex | undefined): Promise<string[]> {
    const { pin, repo } = this.#request
    const ref = repo && named ? `${formatRepoId(repo)}:${named.quants[0]}` : `svc:///pinned/model@${pin}`
    const notice = withheldNotice(ref, await this.#deps.artifacts.standing(pin))
    if (notice === undefined) return []
    const { markedBy } = this.#documents
    return [markedBy === undefined ? notice : `${markedBy}: ${notice}`]
  }

  /** The artifact's record; with a name, the artifact is needed as long as it has the name. */
  #state(): ArtifactImport {
    const { pin, hints, repo, isResumed, companions } = this.#request
    const name = repo === undefined ? '' : formatRepoId(repo)
    return {
      manifestDigest: pin,
      source: { kind: 'bt' },
      provenance: this.#provenance,
      pinned: repo === undefined,
      hints,
      ...(repo !== undefined && isResumed !== true && { futureName: name }),
      ...(companions && isResumed !== true && { futureCompanions: { ...companions, name } })
    }
  }

  /** Adds the artifact to a repository's index, under the quant in its model config (spec add.8). */
  async #name(
    repo: RepoId,
    { manifest }: Pick<PinnedTorrent, 'manifest'>,
    distribution: Sha256Digest
  ): Promise<NamedIndex> {
    const { store, artifacts } = this.#deps
    const quant = await storedConfigQuant(store, manifest.document)
    const sealed = [{ member: { quant, manifest: manifest.digest, distribution }, manifest }]
    const { hints, isResumed = false, mayReplace = true } = this.#request
    const source = {
      origin: { kind: 'bt' },
      provenanceOf: () => this.#provenance,
      hints,
      mayReplace: isResumed ? false : mayReplace,
      ...(isResumed && { isWanted: () => this.#isToBe(repo) })
    } as const
    const { indexDigest, replaced } = await commitArtifacts(repo, sealed, source, this.#deps).catch(
      async (error: unknown) => {
        // another artifact has the name: the next start need not try again
        if (!isResumed && error instanceof LibraryError && error.code === 'E_NOT_IMPORTABLE')
          await artifacts.endFutureName(manifest.digest, formatRepoId(repo))
        throw error
      }
    )
    await artifacts.endFutureName(manifest.digest, formatRepoId(repo))
    return { indexDigest, quants: [quant], ...(replaced.length > 0 && { replaced: [...replaced] }) }
  }

  async #isToBe(repo: RepoId): Promise<boolean> {
    const state = await this.#deps.artifacts.read(this.#request.pin)
    return state?.futureName === formatRepoId(repo)
  }

  /** What the owner has given up since is not fetched for others. */
  async #stopUnwanted(stop: AbortController): Promise<void> {
    const { repo, isResumed } = this.#request
    if (repo === undefined || isResumed !== true) return
    // an unreadable state says nothing
    const isToBe = await this.#isToBe(repo).catch(() => true)
    if (!isToBe) stop.abort(new DaemonError('E_ABORTED', `the name ${formatRepoId(repo)} is no longer wanted`))
  }

  async #record(torrent: PinnedTorrent, layers: PieceLayers | undefined): Promise<Sha256Digest> {
    const context = { ...this.#deps, signal: this.#job.signal }
    const record = await writeRecord(torrent.manifest, torrent, context, layers)
    await context.artifacts.record({ ...this.#state(), record })
    return record
  }

  #report(torrent: ArtifactTorrent, { blobsDone, bytesDone, peers, sources, rateBytesPerSecond }: FetchProgress): void {
    const files = torrent.files.length - 1
    this.#job.report({ filesDone: Math.min(blobsDone, files), bytesDone, peers, sources, rateBytesPerSecond })
  }
}

const sizeOf = (files: readonly { readonly size: number }[]): number => files.reduce((sum, { size }) => sum + size, 0)
