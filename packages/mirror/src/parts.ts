// What the daemon composes; it may change in any version (README.md).

export { MirrorError } from './mirror-error.ts'
export { Mirrors, type MirrorsDeps } from './mirrors.ts'
