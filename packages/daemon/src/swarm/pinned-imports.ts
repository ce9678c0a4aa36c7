import type { Job } from '@svc/client/protocol'
import { type ArtifactState, type Beside, type Filler, readSmallBlob, verdictOf } from '@svc/library/parts'
import { parseInfohash } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { Swarm } from '@svc/swarm'
import type { SwarmConfig } from '../config/config.ts'
import { DaemonError } from '../errors.ts'
import { importTarget } from '../import-fields.ts'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import type { CompanionsSwarm } from './companions-swarm.ts'
import { type Fetches, lonelyTimeoutMs } from './fetches.ts'
import { type ImportBtContext, type ImportBtDeps, startImportBt } from './import-bt.ts'
import { companionsFromPeers, manifestFromPeers, type PeerDocumentOptions } from './peer-documents.ts'
import { bringCompanions, type CompanionsDeps } from './pinned-companions.ts'
import type { PinnedImport } from './pinned-import.ts'
import type { WebseedReading } from './pinned-manifest.ts'
import type { SignedRequests } from './signed-requests.ts'

/** The model is here by then: the import does not wait longer for peers that lack its companions. */
const COMPANIONS_TIMEOUT_MS = 30_000

export interface PinnedImportsDeps extends ImportBtContext {
  readonly config: SwarmConfig
  readonly engine: Swarm
  readonly reading: WebseedReading
  readonly torrents: Pick<ArtifactTorrents, 'of'>
  readonly fetches: Pick<Fetches, 'run' | 'turns'>
  readonly signed: Pick<SignedRequests, 'watching'>
  readonly companions: Pick<CompanionsSwarm, 'fetched'>
  /** The torrents of companions. */
  readonly beside: Pick<ArtifactSwarm, 'joined'>
  readonly joinWhenDone: ImportBtDeps['joinWhenDone']
  /** Default {@link COMPANIONS_TIMEOUT_MS}. */
  readonly companionsTimeoutMs: number | undefined
}

/** Imports of artifacts and companions by their pins. */
export class PinnedImports {
  readonly #deps: PinnedImportsDeps & ImportBtDeps

  constructor(deps: PinnedImportsDeps) {
    const { store, engine, fetches, beside, config } = deps
    this.#deps = {
      ...deps,
      isWithheld: (artifact) => !verdictOf(artifact, 'swarm', config).given,
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

  start(request: PinnedImport): Job {
    return startImportBt(request, this.#deps)
  }

  /** Continues an interrupted import, for a client of a mirror. @throws DaemonError `E_NOT_FOUND` for an unknown manifest */
  async resume({ manifestDigest, hints, futureCompanions }: ArtifactState, futureName: string): Promise<Job> {
    const torrent = await this.#deps.torrents.of(manifestDigest)
    if (torrent === undefined)
      throw new DaemonError('E_NOT_FOUND', `the manifest ${manifestDigest} is not in the store`)
    return this.start({
      pin: manifestDigest,
      infohashText: torrent.infohashText,
      hints,
      manifestFromPeers: true,
      companions: futureCompanions,
      repo: importTarget(futureName, 'as'),
      private: false,
      // the owner's import got as far as its record
      opaque: { allowsPickles: true },
      isResumed: true
    })
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
      const repo = wanted.name === '' ? undefined : importTarget(wanted.name, 'as')
      const request = { pin: manifestDigest, repo, hints: state!.hints }
      const { result, warnings } = await bringCompanions(wanted, request, torrent, this.#deps, context)
      return { ...result, ...(warnings.length > 0 && { warnings: [...warnings] }) }
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
    const { clock, config, documents } = this.#deps
    const fillTimeoutMs = Math.min(config.fillTimeoutMs, maxTimeoutMs)
    return {
      clock,
      documents,
      trackers: config.trackers,
      fillTimeoutMs,
      lonelyTimeoutMs: lonelyTimeoutMs({ ...config, fillTimeoutMs }, request)
    }
  }
}
