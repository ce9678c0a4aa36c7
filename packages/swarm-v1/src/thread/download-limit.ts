import type { Clock } from '@svc/internal-clock'
import { SharedDownloadLimit } from '@svc/internal-net'
import { SwarmV1Error } from '../errors.ts'
import type { WebTorrentClient } from './client.ts'

/** Requests and the like of other peers: they are counted, but those who wait to be served do not wait for this. */
const CONTROL_BYTES = 1_024
/** Pieces of what comes that each wait for their turn. */
const CHUNK_BYTES = 16_384
/** Only what stands in for its bucket counts. */
const ANY_RATE = 1 << 30

/** Has all connections of a client observe the limit. */
export function limitDownloads({ throttleGroups }: WebTorrentClient, memory: SharedArrayBuffer, clock: Clock): void {
  const down = throttleGroups?.down
  if (down === undefined)
    throw new SwarmV1Error('E_SWARM_V1', 'client', 'this version of webtorrent limits downloads differently')
  const limit = new SharedDownloadLimit(memory)
  down.setRate(ANY_RATE, CHUNK_BYTES)
  let ticket = 0
  down.bucket = {
    tokensPerInterval: ANY_RATE,
    tryRemoveTokens(count) {
      ticket = limit.take(count)
      return count < CONTROL_BYTES || limit.waitMs(ticket) === 0
    },
    // called at once where the one above said no
    removeTokens(_, callback) {
      const own = ticket
      const wait = (): void => {
        const waitMs = limit.waitMs(own)
        if (waitMs === 0) callback()
        else clock.after(waitMs, wait)
      }
      wait()
    }
  }
  down.setEnabled(true)
}
