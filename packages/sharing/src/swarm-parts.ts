import type { HttpClient } from '@svc/internal-http'
import type { PeerAddress } from '@svc/internal-net'
import type { TrafficCounter } from '@svc/internal-server'
import type { CopyWitness, Filler, Library, Needed } from '@svc/library/parts'
import type { Swarm, SwarmOptions } from '@svc/swarm'
import type { AnswerReader } from './answers.ts'
import { ArtifactSwarm } from './artifact-swarm.ts'
import { ArtifactTorrents } from './artifact-torrents.ts'
import { CompanionsSwarm } from './companions-swarm.ts'
import { Fetches } from './fetches.ts'
import { SwarmFiller } from './filler.ts'
import { PeerCopies } from './peer-copies.ts'
import type { CompanionsDeps } from './pinned-companions.ts'
import type { PinnedImportContext } from './pinned-import.ts'
import { PinnedImports } from './pinned-imports.ts'
import { ArtifactSeeding } from './seeding.ts'
import type { SwarmSettings } from './settings.ts'
import { SignedRequests } from './signed-requests.ts'
import { WebseedCopies } from './webseed-copies.ts'
import type { WebseedKeys } from './webseed-keys.ts'
import type { WebseedPort } from './webseed-port.ts'

export interface SwarmClientDeps
  extends PinnedImportContext,
    Pick<CompanionsDeps, 'howToFetch'>,
    Pick<Library, 'log' | 'holdings' | 'ports'> {
  readonly needed: Pick<Needed, 'isGiven'>
  readonly settings: SwarmSettings
  /** A limit of what is received, that others share. Absent: none. */
  readonly downloads?: SwarmOptions['downloadLimit']
  /** Where to listen; webseed clients are served nowhere without an address, and peers unless it `listens`, which is the default. */
  readonly addresses: {
    readonly peer: PeerAddress
    readonly webseed: PeerAddress | undefined
    readonly listens?: boolean
  }
  /** Absent: no request to a webseed is signed. */
  readonly keys?: Pick<WebseedKeys, 'headersFor' | 'states'> | undefined
  /** Counts the webseed listener's traffic; `mark` is in the user agent of requests that it may not answer. */
  readonly listeners?: { readonly mark: string; add(listener: 'webseed'): TrafficCounter }
}

export interface SwarmClientOptions {
  /** The start waits for the verification no longer than this; default ten seconds (spec swarm.6). */
  readonly startLimitMs?: number
  /** A pinned import waits for a source of its companions no longer than this; default 30 seconds. */
  readonly companionsTimeoutMs?: number
}

/** What the parts share. */
export interface SwarmMeans {
  readonly engine: Swarm
  readonly webseed: Pick<WebseedPort, 'listener'>
  readonly web: HttpClient
  readonly answers: Pick<AnswerReader, 'parse'>
}

/** What works on the swarms of a store. */
export interface SwarmParts {
  readonly swarm: ArtifactSwarm
  /** The torrents of companions. */
  readonly beside: ArtifactSwarm
  readonly torrents: ArtifactTorrents
  readonly companions: CompanionsSwarm
  readonly seeding: ArtifactSeeding
  readonly fetches: Fetches
  readonly signed: SignedRequests
  readonly pinned: PinnedImports
  readonly filler: Filler
  readonly copies: readonly CopyWitness[]
}

const NO_KEYS: Pick<WebseedKeys, 'headersFor'> = { headersFor: async () => undefined }

/** Connects the parts: each names what it needs of the others. */
export function composeSwarm(
  deps: SwarmClientDeps,
  { engine, webseed, web, answers }: SwarmMeans,
  { startLimitMs, companionsTimeoutMs }: SwarmClientOptions
): SwarmParts {
  const { clock, settings, listeners, keys = NO_KEYS } = deps
  const engines = { ...deps, swarm: engine, webseed: () => webseed.listener, trackers: settings.trackers }
  const beside = new ArtifactSwarm(engines)
  const swarm = new ArtifactSwarm({ ...engines, onSeeding: (digest) => companions.follow(digest) })
  const torrents = new ArtifactTorrents({ ...deps, answers })
  const reading = { web, keys, clock, parse: answers.parse }
  const common = { ...deps, engine, keys, torrents, swarm, beside, reading }
  const companions = new CompanionsSwarm({ ...common, isFetching: (digest) => !fetches.turns.isFree(digest) })
  const fetches = new Fetches(common)
  const seeding = new ArtifactSeeding({ ...common, startLimitMs })
  const signed = new SignedRequests({ ...common, onRestricted: (digest) => fetches.changed(digest) })
  const pinned = new PinnedImports({ ...common, fetches, signed, companions, seeding, companionsTimeoutMs })
  const filler = new SwarmFiller({ ...common, fetches, seeding, pinned })
  const copies = [
    new WebseedCopies({ ...common, mark: listeners?.mark }),
    new PeerCopies({ ...common, fetches, seeding })
  ]
  return { swarm, beside, torrents, companions, seeding, fetches, signed, pinned, filler, copies }
}
