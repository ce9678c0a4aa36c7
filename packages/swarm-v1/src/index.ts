export { SwarmV1Error, type SwarmV1ErrorCode } from './errors.ts'
export { parseV1Torrent, type V1File, type V1Layout } from './layout.ts'
export type { V1Storage } from './storage.ts'
export {
  type JoinOptions,
  type V1Progress,
  V1Swarm,
  type V1SwarmOptions,
  type V1Torrent
} from './swarm.ts'
