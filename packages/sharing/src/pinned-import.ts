import type { Beside, Library, Room, TrustRule, Work } from '@svc/library/parts'
import type { ArtifactTorrent } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactFetchContext, FetchProgress, FetchRequest } from './artifact-fetch.ts'
import { requireAllowed, requireNoPickles } from './opaque-files.ts'
import {
  bringCompanions,
  type CompanionsDeps,
  checkBrought,
  fetchCompanions,
  ruleFor,
  type UnclaimedCompanions
} from './pinned-companions.ts'
import { type NamedIndex, PinnedRecord, type PinnedRecordDeps } from './pinned-record.ts'
import type { PinnedRequest } from './pinned-request.ts'
import { type PinnedTorrent, type PinnedTorrentDeps, pinnedTorrent } from './pinned-torrent.ts'
import type { ArtifactSeeding } from './seeding.ts'
import { requireSpaceFor } from './space.ts'
import { WebseedDocuments } from './webseed-documents.ts'

export interface PinnedImportContext extends PinnedRecordDeps, Pick<Library, 'trust'> {
  readonly room: Pick<Room, 'require'>
}

export interface PinnedImportDeps extends PinnedImportContext, CompanionsDeps, PinnedTorrentDeps {
  readonly fetch: (
    request: Pick<FetchRequest, 'torrent' | 'layers' | 'hints' | 'heldManifest'>,
    context: Pick<ArtifactFetchContext, 'signal' | 'onProgress'>
  ) => Promise<readonly string[]>
  readonly seeding: Pick<ArtifactSeeding, 'goOnOrLeave'>
}

/** What a pinned import made. */
export interface PinnedResult extends Partial<NamedIndex>, Beside {
  readonly manifests: readonly Sha256Digest[]
  readonly infohash: string
  readonly skipped: 0
}

/** What is fetched, and from where. */
interface Source extends Pick<FetchRequest, 'layers' | 'hints'> {
  readonly torrent: PinnedTorrent
}

/** An import of an artifact by its pin: identity first, then bytes (spec swarm.14, swarm.15). */
export class PinnedImport {
  readonly #request: PinnedRequest
  readonly #deps: PinnedImportDeps
  readonly #work: Work
  readonly #warnings: string[] = []
  readonly #webseeds: WebseedDocuments
  readonly #record: PinnedRecord

  constructor(request: PinnedRequest, deps: PinnedImportDeps, work: Work) {
    this.#request = request
    this.#deps = deps
    this.#work = work
    this.#webseeds = new WebseedDocuments(deps.reading, request.hints, (message) => this.#warnings.push(message))
    this.#record = new PinnedRecord(request, this.#webseeds, deps)
  }

  async run(): Promise<PinnedResult> {
    const source = await this.#identify()
    const rule = ruleFor(this.#deps.trust, this.#request.repo, source.torrent.manifest.document)
    const checked = rule?.mode === 'require' ? await this.#checked(rule, source) : undefined
    await this.#record.begin(source.torrent, source.layers, this.#work.signal)
    await this.#fetch(source)
    const named = await this.#name(source)
    // companions may take long; cancelling the wait keeps the model
    await this.#deps.seeding.goOnOrLeave(this.#request.pin)
    const beside = await this.#bringCompanions(source, checked, rule)
    return this.#result(source, named, beside)
  }

  /** Finds out what the pin names, whether it may be here and fits, and which pieces it has. */
  async #identify(): Promise<Source> {
    const { pin, opaque, mayEvict = false } = this.#request
    const { signal } = this.#work
    const search = { provenance: () => this.#record.provenance, warnings: this.#warnings }
    const { torrent, hints } = await pinnedTorrent(this.#request, this.#webseeds, this.#deps, this.#work, search)
    const { files } = torrent.manifest.document
    requireAllowed(torrent.manifest.document, opaque)
    this.#work.report({ filesTotal: files.length, bytesTotal: sizeOf(files), manifest: pin })
    await requireSpaceFor(torrent, this.#deps, { mayEvict, signal })
    if (hints.webseeds.length === 0) return { torrent, hints, layers: undefined }
    await this.#webseeds.readListing(pin, signal)
    // peers have the layers that no webseed has: the engine asks them
    return { torrent, hints, layers: await this.#webseeds.pieceLayers(torrent, signal) }
  }

  /**
   * Fetches the model and its companions as blobs without a manifest, of which nothing is given to others.
   * @throws LibraryError `E_NOT_IMPORTABLE` for what the rule refuses
   */
  async #checked(rule: TrustRule, { torrent, layers, hints }: Source): Promise<UnclaimedCompanions> {
    const { trust, store, clock, fetch } = this.#deps
    const { companions } = this.#request
    if (companions === undefined) throw trust.refusal(rule)
    await this.#record.beforeCheck()
    const brought = await fetchCompanions(companions, this.#request, this.#deps, this.#work)
    await trust.requireSigned(rule, brought.document.files, { store, clock })
    const onProgress = (progress: FetchProgress): void => this.#report(torrent, progress)
    const request = { torrent, layers, hints, heldManifest: torrent.manifest.bytes }
    await fetch(request, { signal: this.#work.signal, onProgress })
    await checkBrought(rule, torrent.manifest.document, brought, this.#deps, this.#work)
    return brought
  }

  async #fetch({ torrent, layers, hints }: Source): Promise<void> {
    const unwanted = new AbortController()
    const onProgress = (progress: FetchProgress): void => {
      this.#report(torrent, progress)
      this.#record.requireWanted().catch((reason: unknown) => unwanted.abort(reason))
    }
    const signal = AbortSignal.any([this.#work.signal, unwanted.signal])
    this.#warnings.push(...(await this.#deps.fetch({ torrent, layers, hints }, { signal, onProgress })))
  }

  async #name({ torrent, layers }: Source): Promise<NamedIndex | undefined> {
    const { pin, repo, opaque } = this.#request
    const { store, seeding } = this.#deps
    try {
      await requireNoPickles(torrent.manifest.document, opaque, store)
      const { signal } = this.#work
      const made = layers === undefined ? await this.#record.distribution(torrent, layers, signal) : undefined
      return await this.#record.name(torrent, made)
    } catch (error) {
      // an artifact that did not get its name leaves the swarm
      if (repo !== undefined) await seeding.goOnOrLeave(pin).catch(() => undefined)
      throw error
    }
  }

  async #bringCompanions(
    { torrent }: Source,
    checked: UnclaimedCompanions | undefined,
    rule: TrustRule | undefined
  ): Promise<Beside> {
    const { companions } = this.#request
    if (companions !== undefined)
      return bringCompanions(companions, this.#request, torrent, this.#deps, this.#work, checked)
    return rule === undefined ? {} : { warnings: [this.#deps.trust.refusal(rule).message] }
  }

  async #result({ torrent }: Source, named: NamedIndex | undefined, beside: Beside): Promise<PinnedResult> {
    const { pin, infohashText } = this.#request
    const { files } = torrent.manifest.document
    this.#work.report({ filesDone: files.length, filesTotal: files.length, bytesDone: sizeOf(files) })
    const warnings = [...this.#warnings, ...(beside.warnings ?? []), ...(await this.#record.notice(named))]
    return {
      manifests: [pin],
      infohash: infohashText,
      ...named,
      skipped: 0,
      ...beside,
      ...(warnings.length > 0 && { warnings })
    }
  }

  #report(torrent: ArtifactTorrent, { blobsDone, bytesDone, peers, sources, rateBytesPerSecond }: FetchProgress): void {
    const files = torrent.files.length - 1
    this.#work.report({ filesDone: Math.min(blobsDone, files), bytesDone, peers, sources, rateBytesPerSecond })
  }
}

const sizeOf = (files: readonly { readonly size: number }[]): number => files.reduce((sum, { size }) => sum + size, 0)
