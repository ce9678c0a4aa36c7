import { type Beside, type Filler, LibraryError, readSmallBlob, verdictOf, type Work } from '@svc/library/parts'
import { parseInfohash } from '@svc/metainfo'
import { formatRepoId, parseRepoId, type Sha256Digest } from '@svc/ref'
import type { Swarm } from '@svc/swarm'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import type { CompanionsSwarm } from './companions-swarm.ts'
import { type Fetches, lonelyTimeoutMs } from './fetches.ts'
import { companionsFromPeers, manifestFromPeers, type PeerDocumentOptions } from './peer-documents.ts'
import { bringCompanions, type CompanionsDeps } from './pinned-companions.ts'
import { PinnedImport, type PinnedImportContext, type PinnedImportDeps, type PinnedResult } from './pinned-import.ts'
import type { PinnedRequest } from './pinned-request.ts'
import type { SwarmSettings } from './settings.ts'
import type { SignedRequests } from './signed-requests.ts'
import type { WebseedReading } from './webseed-documents.ts'

/** The model is here by then: the import does not wait longer for peers that lack its companions. */
const COMPANIONS_TIMEOUT_MS = 30_000

export interface PinnedImportsDeps extends PinnedImportContext, Pick<CompanionsDeps, 'howToFetch'> {
  readonly settings: SwarmSettings
  readonly engine: Swarm
  readonly reading: WebseedReading
  readonly torrents: Pick<ArtifactTorrents, 'of'>
  readonly fetches: Pick<Fetches, 'run' | 'turns'>
  readonly signed: Pick<SignedRequests, 'watching'>
  readonly companions: Pick<CompanionsSwarm, 'fetched'>
  /** The torrents of companions. */
  readonly beside: Pick<ArtifactSwarm, 'joined'>
  readonly seeding: PinnedImportDeps['seeding']
  /** Default {@link COMPANIONS_TIMEOUT_MS}. */
  readonly companionsTimeoutMs: number | undefined
}

/** Imports of artifacts and companions by their pins. */
export class PinnedImports {
  readonly #deps: PinnedImportsDeps & PinnedImportDeps

  constructor(deps: PinnedImportsDeps) {
    const { store, engine, fetches, beside, settings } = deps
    this.#deps = {
      ...deps,
      isWithheld: (artifact) => !verdictOf(artifact, 'swarm', settings).given,
      hasCompanions: (digest) => beside.joined.has(digest),
      companionsFromPeers: (...fetch) => this.#companionsFromPeers(...fetch),
      manifestFromPeers: (wanted, context) =>
        // one at a time: the engine can join a swarm only once
        fetches.turns.run(wanted.pin, context.signal, async () => {
          const present = await readSmallBlob(store, wanted.pin)
          return present ?? manifestFromPeers(engine, wanted, context, this.#optionsFor(wanted))
        }),
      fetch: (...fetch) => fetches.run(...fetch)
    }
  }

  run(request: PinnedRequest, work: Work): Promise<PinnedResult> {
    return new PinnedImport(request, this.#deps, work).run()
  }

  /** The rest of an interrupted import, for somebody else than its owner; undefined if there is nothing to go on with. */
  async rest(manifestDigest: Sha256Digest): Promise<PinnedRequest | undefined> {
    const state = await this.#deps.artifacts.read(manifestDigest)
    if (state?.futureName === undefined) return undefined
    const torrent = await this.#deps.torrents.of(manifestDigest)
    if (torrent === undefined)
      throw new LibraryError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
    return {
      pin: manifestDigest,
      infohashText: torrent.infohashText,
      hints: state.hints,
      manifestFromPeers: true,
      companions: state.futureCompanions,
      repo: parseRepoId(state.futureName),
      private: false,
      // the owner's import got as far as its record
      opaque: { allowsPickles: true },
      isResumed: true
    }
  }

  /** The owner no longer wants it: it is not resumed for others. */
  async giveUp({ pin, repo }: Pick<PinnedRequest, 'pin' | 'repo'>): Promise<void> {
    if (repo === undefined) return
    await this.#deps.artifacts.endFutureName(pin, formatRepoId(repo))
    await this.#deps.artifacts.endFutureCompanions(pin, formatRepoId(repo))
  }

  /** @throws only the signal's reason */
  async fillBeside(
    manifestDigest: Sha256Digest,
    context: Parameters<Filler['fillBeside']>[1]
  ): Promise<Beside | undefined> {
    const { artifacts, torrents } = this.#deps
    try {
      const state = await artifacts.read(manifestDigest)
      const torrent = state?.futureCompanions && (await torrents.of(manifestDigest))
      if (torrent === undefined) return undefined
      const wanted = state!.futureCompanions!
      const repo = wanted.name === '' ? undefined : parseRepoId(wanted.name)
      const request = { pin: manifestDigest, repo, hints: state!.hints }
      return await bringCompanions(wanted, request, torrent, this.#deps, context)
    } catch (error) {
      // the model is here, whatever becomes of its companions
      context.signal.throwIfAborted()
      return { warnings: [`the companions are not here: ${(error as Error).message}`] }
    }
  }

  async #companionsFromPeers(
    ...[request, context]: Parameters<CompanionsDeps['companionsFromPeers']>
  ): ReturnType<CompanionsDeps['companionsFromPeers']> {
    const { engine, fetches, signed, companions, beside, companionsTimeoutMs = COMPANIONS_TIMEOUT_MS } = this.#deps
    const { pin, infohashText } = request
    const options = this.#optionsFor(request, companionsTimeoutMs)
    try {
      return await fetches.turns.run(pin, context.signal, async () =>
        beside.joined.has(pin)
          ? undefined
          : signed.watching(parseInfohash(infohashText), () => companionsFromPeers(engine, request, context, options))
      )
    } finally {
      companions.fetched(pin)
    }
  }

  #optionsFor(
    request: Parameters<typeof lonelyTimeoutMs>[1],
    maxTimeoutMs = Number.POSITIVE_INFINITY
  ): PeerDocumentOptions {
    const { clock, settings, documents } = this.#deps
    const fillTimeoutMs = Math.min(settings.fillTimeoutMs, maxTimeoutMs)
    return {
      clock,
      documents,
      trackers: settings.trackers,
      fillTimeoutMs,
      lonelyTimeoutMs: lonelyTimeoutMs({ ...settings, fillTimeoutMs }, request)
    }
  }
}
