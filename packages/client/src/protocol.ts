export * from './protocol/bodies.ts'
export { tryParseByteSize } from './protocol/byte-size.ts'
export { ERROR_CODES, type ErrorCode, type ErrorCodeEntry, errorStatus } from './protocol/error-codes.ts'
export { type ErrorBody, ErrorBodySchema, type ErrorEnvelope, ErrorEnvelopeSchema } from './protocol/error-envelope.ts'
export { DigestSchema, InfohashSchema, type Origin, OriginSchema, RefSchema } from './protocol/fields.ts'
export { type HubTokenEnv, hubTokenFile } from './protocol/hub-token.ts'
export * from './protocol/inventory.ts'
export * from './protocol/job.ts'
export { isTerminal } from './protocol/job-state.ts'
export * from './protocol/outdated.ts'
export {
  API_VERSIONS,
  MAX_ADOPT_BODY_BYTES,
  MAX_BODY_BYTES,
  type Method,
  PATHS,
  type RouteId
} from './protocol/paths.ts'
export * from './protocol/plan.ts'
export * from './protocol/removal.ts'
export * from './protocol/resolve.ts'
export { ROUTES, type Route, type RouteErrors } from './protocol/routes.ts'
export * from './protocol/search.ts'
export { type Snapshot, SnapshotSchema } from './protocol/snapshot.ts'
export {
  defaultSocketPath,
  isDefaultSocket,
  runtimeFilePath,
  type SocketEnv,
  type SocketFolderFacts,
  socketFolderProblem
} from './protocol/socket-path.ts'
export * from './protocol/status.ts'
export * from './protocol/tag.ts'
export * from './protocol/view.ts'
export * from './protocol/why.ts'
