export {
  type DocumentKind,
  type DocumentParsers,
  DocumentThread,
  serveDocuments
} from './document-thread.ts'
export { type ErrorCodec, plainErrors } from './error-codec.ts'
export { LimitedThread } from './limited-thread.ts'
export { yieldToOthers } from './priority.ts'
export type { ThreadCallOptions } from './protocol.ts'
export { supervisedData } from './pulse.ts'
export { type CallContext, serveCalls } from './serve.ts'
export { SupervisedThread, type ThreadFault } from './supervised-thread.ts'
export { RECOGNITION_NICE, TRANSFER_NICE } from './thread-priority.ts'
export { WorkerPool } from './worker-pool.ts'
export { WorkerThread, type WorkerThreadOptions, workerUrl } from './worker-thread.ts'
