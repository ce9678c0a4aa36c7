export {
  formatAddress,
  formatCompact4,
  isPublicAddress,
  type PeerAddress,
  parseCompact,
  tryParseAddress
} from './address.ts'
export { boundIntervals, type TrackerTimers } from './tracker-intervals.ts'
