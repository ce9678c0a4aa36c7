import {
  type ArtifactImport,
  type CommitContext,
  commitArtifacts,
  type Library,
  LibraryError,
  type Provenance,
  storedConfigQuant,
  withheldNotice,
  withMark,
  writeDocument,
  writeRecord
} from '@svc/library/parts'
import type { PieceLayers } from '@svc/metainfo'
import { formatRepoId, type Sha256Digest } from '@svc/ref'
import type { PinnedRequest } from './pinned-request.ts'
import type { PinnedTorrent } from './pinned-torrent.ts'
import type { WebseedDocuments } from './webseed-documents.ts'

export type PinnedRecordDeps = CommitContext & Pick<Library, 'leafLayers' | 'advise'>

/** The name that an artifact got. */
export interface NamedIndex {
  readonly indexDigest: Sha256Digest
  readonly quants: readonly string[]
  readonly replaced?: readonly { readonly quant: string; readonly manifest: Sha256Digest }[]
}

/** What the store says of an artifact that is imported by its pin: whose bytes they are, who may have them, and its name. */
export class PinnedRecord {
  readonly #request: PinnedRequest
  readonly #webseeds: WebseedDocuments
  readonly #deps: PinnedRecordDeps

  constructor(request: PinnedRequest, webseeds: WebseedDocuments, deps: PinnedRecordDeps) {
    this.#request = request
    this.#webseeds = webseeds
    this.#deps = deps
  }

  /** Documents that require a key are restricted (spec add.33); for files, the first signed request says so. */
  get provenance(): Provenance {
    const facts: Provenance = this.#webseeds.isSigned
      ? { access: 'restricted', by: 'webseed-key' }
      : { access: 'public' }
    const marked = this.#webseeds.markedBy !== undefined ? { marked: true as const } : {}
    return withMark({ ...facts, ...marked }, this.#request.private, this.#deps.clock)
  }

  /** Says only who may have the bytes: nothing is to be visible before it was checked. */
  async beforeCheck(): Promise<void> {
    const { artifacts } = this.#deps
    const { futureName: _, futureCompanions: __, ...state } = this.#state()
    if ((await artifacts.read(this.#request.pin)) === undefined) await artifacts.record({ ...state, pinned: false })
  }

  /** From here on the import can be continued, whatever ends it. */
  async begin(torrent: PinnedTorrent, layers: PieceLayers | undefined, signal: AbortSignal): Promise<void> {
    const { store, artifacts } = this.#deps
    await writeDocument(store, torrent.manifest, signal)
    await artifacts.record(this.#state())
    if (layers !== undefined) await this.distribution(torrent, layers, signal)
  }

  /** Writes its distribution record; without layers, these are made from the blobs. */
  async distribution(
    torrent: PinnedTorrent,
    layers: PieceLayers | undefined,
    signal: AbortSignal
  ): Promise<Sha256Digest> {
    const record = await writeRecord(torrent.manifest, torrent, { ...this.#deps, signal }, layers)
    await this.#deps.artifacts.record({ ...this.#state(), record })
    return record
  }

  /** Adds the artifact to the repository's index, if one was asked for, under the quant in its model config (spec add.8). */
  async name({ manifest }: PinnedTorrent, record: Sha256Digest | undefined): Promise<NamedIndex | undefined> {
    const { repo, hints, isResumed = false, mayReplace = true } = this.#request
    if (repo === undefined) return undefined
    const { store, artifacts } = this.#deps
    const distribution = record ?? (await artifacts.read(manifest.digest))!.record!
    const quant = await storedConfigQuant(store, manifest.document)
    const sealed = [{ member: { quant, manifest: manifest.digest, distribution }, manifest }]
    const source = {
      origin: { kind: 'bt' },
      provenanceOf: () => this.provenance,
      hints,
      mayReplace: isResumed ? false : mayReplace,
      ...(isResumed && { isWanted: () => this.#isToBe(formatRepoId(repo)) })
    } as const
    const name = formatRepoId(repo)
    const { indexDigest, replaced } = await commitArtifacts(repo, sealed, source, this.#deps).catch(
      async (error: unknown) => {
        // another artifact has the name: the next start need not try again
        if (!isResumed && error instanceof LibraryError && error.code === 'E_NOT_IMPORTABLE')
          await artifacts.endFutureName(manifest.digest, name)
        throw error
      }
    )
    await artifacts.endFutureName(manifest.digest, name)
    return { indexDigest, quants: [quant], ...(replaced.length > 0 && { replaced }) }
  }

  /** @throws LibraryError `E_ABORTED` for what is fetched for others, if the owner has given it up since */
  async requireWanted(): Promise<void> {
    const { repo, isResumed } = this.#request
    if (repo === undefined || isResumed !== true) return
    const name = formatRepoId(repo)
    // an unreadable state says nothing
    if (!(await this.#isToBe(name).catch(() => true)))
      throw new LibraryError('E_ABORTED', `the name ${name} is no longer wanted`)
  }

  /** Why others do not get it, for people. A web server may send the mark by habit: this says so, and how to share it anyway. */
  async notice(named: NamedIndex | undefined): Promise<string[]> {
    const { pin, repo } = this.#request
    const ref = repo && named ? `${formatRepoId(repo)}:${named.quants[0]}` : `svc:///pinned/model@${pin}`
    const notice = withheldNotice(ref, await this.#deps.artifacts.standing(pin), this.#deps.advise)
    if (notice === undefined) return []
    const { markedBy } = this.#webseeds
    return [markedBy === undefined ? notice : `${markedBy}: ${notice}`]
  }

  /** With a name, the artifact is needed as long as it has the name. */
  #state(): ArtifactImport {
    const { pin, hints, repo, isResumed, companions } = this.#request
    const name = repo === undefined ? '' : formatRepoId(repo)
    return {
      manifestDigest: pin,
      source: { kind: 'bt' },
      provenance: this.provenance,
      pinned: repo === undefined,
      hints,
      ...(repo !== undefined && isResumed !== true && { futureName: name }),
      ...(companions && isResumed !== true && { futureCompanions: { ...companions, name } })
    }
  }

  async #isToBe(name: string): Promise<boolean> {
    return (await this.#deps.artifacts.read(this.#request.pin))?.futureName === name
  }
}
