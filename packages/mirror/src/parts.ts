// What the daemon composes; it may change in any version (README.md).

export type { OnDemand } from './demand.ts'
export { MirrorError } from './mirror-error.ts'
export { type MirrorKind, Mirrors } from './mirrors.ts'
