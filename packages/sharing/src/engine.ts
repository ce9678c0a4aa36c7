import type { PeerAddress, TokenBucket } from '@svc/internal-net'
import { TRANSFER_NICE } from '@svc/internal-workers'
import type { Library } from '@svc/library/parts'
import { createSwarm, type Swarm, type SwarmOptions } from '@svc/swarm'
import type { ParseAnswer } from './answers.ts'
import type { SwarmSettings } from './settings.ts'
import type { SignedRequests } from './signed-requests.ts'

/** Bootstrap nodes of the DHT, unless others are configured. */
const PUBLIC_DHT_NODES = ['router.bittorrent.com:6881', 'router.utorrent.com:6881', 'dht.transmissionbt.com:6881']

export interface EngineDeps extends Pick<Library, 'clock' | 'log' | 'ports'> {
  readonly settings: SwarmSettings
  readonly peerAddress: PeerAddress
  /** False: peers are only connected to, and no port is kept. */
  readonly listens: boolean
  readonly limit: TokenBucket
  readonly downloads?: SwarmOptions['downloadLimit']
  readonly parse: ParseAnswer
  /** Undefined if no request to a webseed is signed. */
  readonly headersFor: SignedRequests['headersFor'] | undefined
}

/** The BitTorrent engine, at its address. @throws the error of `listen`, and the engine's for invalid settings */
export function openEngine({
  clock,
  log,
  ports,
  settings,
  peerAddress,
  listens,
  limit,
  downloads,
  parse,
  headersFor
}: EngineDeps): Promise<Swarm> {
  const { dht, dhtBootstrap = PUBLIC_DHT_NODES, trusted, zone, lsd } = settings
  const open = (at: PeerAddress) =>
    createSwarm({
      clock,
      peerAddress: listens && at,
      pex: dht,
      dht: dht && { bootstrap: dhtBootstrap, host: at.host },
      uploadLimit: limit,
      ...(downloads && { downloadLimit: downloads }),
      ...(headersFor && { webseedHeaders: headersFor }),
      trusted,
      ...(zone !== undefined && { zone }),
      lsd,
      parseInfo: (info) => parse('info', info),
      verifyNice: TRANSFER_NICE,
      onFault: ({ thread, error, count, pauseMs }) =>
        log.warn({ err: error, thread, count, pauseMs }, 'a thread that finds peers crashed or hung, and starts again')
    })
  return listens ? ports.listen('peer', peerAddress, open, ({ port }) => port) : open(peerAddress)
}
