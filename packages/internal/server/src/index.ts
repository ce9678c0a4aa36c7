export type { SendBudget } from './blob-pump.ts'
export { sendBlob } from './blob-response.ts'
export { BodyError, readRequestBody } from './body.ts'
export { BufferPool } from './buffer-pool.ts'
export { endConnectionWith } from './connection.ts'
export { EXPOSITION_TYPE, envelope, JSON_TYPE, sendJson } from './envelope.ts'
export { GuardedListener, HARDENING, type ListenerOptions, refuse, sendBytes } from './guarded-listener.ts'
export { HostShares } from './host-shares.ts'
export { KeptSocket } from './kept-socket.ts'
export {
  activatedDescriptor,
  checkSocket,
  claimSocket,
  listenOnDescriptor,
  type SocketPlace,
  type SocketRefusal
} from './private-socket.ts'
export { blobAnswer } from './range.ts'
export { RouteTable } from './route-table.ts'
export { SecretFile } from './secret-file.ts'
export { createHttpServer, type ServerOptions } from './server.ts'
export { type AccessKey, signatureOf, signGet, timeOf } from './sigv4.ts'
export { Listeners, type TrafficCounter } from './traffic.ts'
