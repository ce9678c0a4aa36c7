import { formatAddress, isHost, isPort, type PeerAddress, tryParseAddress } from '@svc/internal-net'
import { parseInfo, parseMagnet, type TorrentInfo } from '@svc/metainfo'
import { SwarmError } from '../errors.ts'
import type { TorrentOptions } from './torrent-options.ts'

export interface TorrentIdentity {
  /** 32 bytes. */
  readonly infohash: Uint8Array
  /** Undefined: to be requested from peers. */
  readonly info: TorrentInfo | undefined
  readonly trackers: readonly string[]
  readonly webseeds: readonly string[]
  readonly peers: readonly PeerAddress[]
  /** Trackers, webseeds and peers (`host:port`) among these that nobody vouches for. */
  readonly strangers: ReadonlySet<string>
}

const unique = (urls: readonly string[]): readonly string[] => [...new Set(urls)]

/** @throws SwarmError `E_OPTION`, `E_ADDRESS`; MetainfoError `E_METAINFO`, `E_MAGNET`, before anything is registered */
export function torrentIdentityOf(options: TorrentOptions): TorrentIdentity {
  const given = [options.info, options.infohash, options.magnet].filter((value) => value !== undefined).length
  if (given !== 1) throw new SwarmError('E_OPTION', 'identity', 'set exactly one of info, infohash and magnet')
  const hints = {
    trackers: options.trackers ?? [],
    webseeds: options.webseeds ?? [],
    peers: (options.peers ?? []).map(parsePeer),
    strangers: new Set(
      (options.strangers ?? []).flatMap((text) => {
        const peer = tryParseAddress(text)
        return peer === undefined ? [text] : [text, formatAddress(peer)]
      })
    )
  }
  if (options.magnet !== undefined) {
    const magnet = parseMagnet(options.magnet)
    return {
      ...hints,
      infohash: magnet.infohash,
      info: undefined,
      trackers: unique([...hints.trackers, ...magnet.trackers]),
      webseeds: unique([...hints.webseeds, ...magnet.webseeds]),
      // invalid addresses are skipped: the magnet's other ones are still useful.
      peers: [...hints.peers, ...magnet.peers.map(tryParseAddress).filter((peer) => peer !== undefined)]
    }
  }
  if (options.infohash !== undefined) {
    if (options.infohash.length !== 32) throw new SwarmError('E_OPTION', 'infohash', 'a v2 infohash must have 32 bytes')
    return { infohash: new Uint8Array(options.infohash), info: undefined, ...hints }
  }
  const info = options.info instanceof Uint8Array ? parseInfo(options.info) : options.info!
  return { infohash: info.infohash, info, ...hints }
}

/** @throws SwarmError `E_ADDRESS`. */
export function parsePeer(peer: string | PeerAddress): PeerAddress {
  const address = typeof peer === 'string' ? tryParseAddress(peer) : peer
  if (address !== undefined && isHost(address.host) && isPort(address.port)) return address
  throw new SwarmError('E_ADDRESS', 'peer', `a peer must be "host:port", not ${JSON.stringify(peer)}`)
}
