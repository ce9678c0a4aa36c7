// What the daemon composes: no promise to anybody else (README.md).

export type { PinnedCopy, PinnedRequest } from './pinned-request.ts'
export type { SharedNote } from './share.ts'
export {
  type SwarmAddresses,
  SwarmClient,
  type SwarmClientDeps,
  type SwarmClientOptions
} from './swarm-client.ts'
export { WebseedKeys } from './webseed-keys.ts'
