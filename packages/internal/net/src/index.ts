export {
  addressReach,
  formatAddress,
  formatCompact,
  isLoopback,
  isPublicAddress,
  type PeerAddress,
  parseCompact,
  parseIPv6,
  tryParseAddress
} from './address.ts'
export { BannedPeers } from './banned-peers.ts'
export {
  DialGuard,
  type DialPolicy,
  isRefusedAddress,
  policyFrom,
  policyOfAddresses,
  policyOfNamer
} from './dial-guard.ts'
export { type DownloadLimit, SharedDownloadLimit, TURN_BYTES } from './download-limit.ts'
export { isHost, isPort } from './host.ts'
export { hostKey, plainAddress } from './host-key.ts'
export { PerSecond } from './per-second.ts'
export { AddressRanges, tryParseRange } from './ranges.ts'
export { TokenBucket } from './token-bucket.ts'
