export type { ReadableModels, TrustRuleSource } from '@svc/library'
export { MirrorError, type MirrorErrorCode, type MirrorKind } from './mirror-error.ts'
export { type ModelServer, type Port, type ServeOptions, serveModels } from './serve-models.ts'
