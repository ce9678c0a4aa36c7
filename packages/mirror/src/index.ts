export { MirrorError, type MirrorErrorCode } from './mirror-error.ts'
export type { MirrorKind } from './mirrors.ts'
export { type ModelServer, type Port, type ServeOptions, serveModels } from './serve-models.ts'
