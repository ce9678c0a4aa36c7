export { type ForeignFile, type ForeignLayout, parseForeignTorrent } from './foreign/layout.ts'
export type { ForeignStorage } from './foreign/storage.ts'
export {
  type ForeignProgress,
  ForeignSwarm,
  type ForeignSwarmOptions,
  type ForeignTorrent,
  type JoinOptions
} from './foreign/swarm.ts'
