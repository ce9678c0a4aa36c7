/** What `flood-thread.ts` is started with. */
export interface FloodData {
  readonly kind: (typeof FLOOD_KINDS)[number]
  readonly socketPath: string
  readonly webseedPort: number
  readonly webseedPath: string
  readonly hubPort: number
  readonly ociPort: number
  readonly metricsPort: number
  readonly peerPort: number
  readonly dhtPort: number
  readonly digest: string
  readonly root: Uint8Array
  readonly handshake: Uint8Array
  readonly ref: string
}

export const FLOOD_KINDS = [
  'nothing',
  'smuggling, socket',
  'smuggling, webseed port',
  'slow readers, socket',
  'slow readers, webseed port',
  'slow writers, socket',
  'slow writers, webseed port',
  'requests, socket',
  'requests, webseed port',
  'pipelining, socket',
  'pipelining, webseed port',
  'half-closed, socket',
  '500 connections, socket',
  '500 connections, webseed port',
  'requests, hub mirror',
  'lists of paths, hub mirror',
  'requests, OCI mirror',
  'slow readers, OCI mirror',
  'pipelining, OCI mirror',
  'requests, metrics port',
  '500 connections, mirrors and metrics port',
  'uTP datagrams',
  'DHT queries',
  'hash requests',
  'wire messages'
] as const
