export {
  formatAddress,
  formatCompact4,
  isPublicAddress,
  type PeerAddress,
  parseCompact,
  tryParseAddress
} from './address.ts'
export { isHost, isPort } from './host.ts'
