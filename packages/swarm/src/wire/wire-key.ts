import { toHex, truncateInfohash } from '@svc/metainfo'

/** The key that torrents are known by on the wire: the truncated infohash in hex. */
export const wireKey = (infohash: Uint8Array): string => toHex(truncateInfohash(infohash))
