/// <reference path="./untyped.d.ts" />

import { lookup } from 'node:dns/promises'
import { boundIntervals, isPublicAddress, tryParseAddress } from '@svc/internal-net'
import { truncateInfohash } from '@svc/metainfo'
import TrackerClient from 'bittorrent-tracker/client'
import type { Discovery, DiscoverySink } from './discovery.ts'

/** Peers taken from one announce. */
const MAX_PEERS = 200
const GOODBYE_MS = 1_500

/**
 * Announces to HTTP and UDP trackers through `bittorrent-tracker`, with the v2 infohash truncated (BEP 52). One client for
 * each tracker, so that it is known who named an address: a tracker on a private address may name private peers.
 */
export function startTrackers(options: {
  /** http, https, udp URLs; others are warned about. */
  readonly urls: readonly string[]
  readonly infohash: Uint8Array
  readonly peerId: Uint8Array
  readonly port: number
  readonly sink: DiscoverySink
}): Discovery {
  const { sink } = options
  const clients = options.urls.flatMap((url) => {
    if (!/^(https?|udp):/i.test(url)) {
      sink.warning(new Error(`tracker ${url}: only http, https and udp are supported`))
      return []
    }
    let allowPrivate: Promise<boolean> | undefined
    const client = new TrackerClient({
      infoHash: Buffer.from(truncateInfohash(options.infohash)),
      peerId: Buffer.from(options.peerId),
      announce: [url],
      port: options.port,
      getAnnounceOpts: () => ({ ...sink.stats(), numwant: 100 }),
      wrtc: false
    })
    boundIntervals(client)
    let taken = 0
    client.on('update', () => {
      taken = 0
    })
    client.on('peer', (text: string) => {
      taken += 1
      const address = typeof text === 'string' && taken <= MAX_PEERS ? tryParseAddress(text) : undefined
      if (address === undefined) return
      if (isPublicAddress(address.host)) return sink.peer(address, false)
      allowPrivate ??= isOnPrivate(url)
      void allowPrivate.then((allowed) => sink.peer(address, allowed))
    })
    client.on('warning', (error: Error) => sink.warning(error))
    client.on('error', (error: Error) => sink.warning(error))
    client.start()
    return [client]
  })
  return {
    completed: () => {
      for (const client of clients) client.complete()
    },
    close: async () => {
      await Promise.all(
        clients.map(
          (client) =>
            new Promise<void>((resolve) => {
              // Its destroy sends the last messages and calls back; a silent tracker must not hold us up.
              const timer = setTimeout(resolve, GOODBYE_MS)
              client.stop()
              client.destroy(() => {
                clearTimeout(timer)
                resolve()
              })
            })
        )
      )
    }
  }
}

/** True when the tracker's host resolves to non-public addresses only. */
async function isOnPrivate(url: string): Promise<boolean> {
  try {
    const host = new URL(url.replace(/^udp:/i, 'http:')).hostname.replace(/^\[|\]$/g, '')
    const addresses = await lookup(host, { all: true })
    return addresses.length > 0 && addresses.every((entry) => !isPublicAddress(entry.address))
  } catch {
    return false
  }
}
