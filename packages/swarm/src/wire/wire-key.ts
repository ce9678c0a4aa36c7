import { toHex, truncateInfohash } from '@svc/metainfo'

/** The key of a torrent on the wire: the truncated infohash in hex. */
export const wireKey = (infohash: Uint8Array): string => toHex(truncateInfohash(infohash))
