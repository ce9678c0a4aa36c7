import type { ExtensionName } from '../wire/extensions.ts'
import type { BlockRef, HashRange } from '../wire/messages.ts'
import type { PendingRequest } from './requests.ts'

/** An event of a connection; its type is a parameter, so that this file and the connection's do not import each other. */
export type ConnectionEvent<P> =
  /** Handshakes are complete: the first event of every peer. */
  | { readonly kind: 'joined'; readonly peer: P }
  | { readonly kind: 'extended'; readonly peer: P }
  /** It has one more piece, or (undefined) announced its whole set. */
  | { readonly kind: 'pieces'; readonly peer: P; readonly piece: number | undefined }
  /** It became interested in us, or lost interest. */
  | { readonly kind: 'interest'; readonly peer: P }
  /** It choked or unchoked us; requests that the choke cancelled were reported as `refused` before. */
  | { readonly kind: 'choke'; readonly peer: P }
  /** The answer to this request is in the piece's buffer, unless the piece was abandoned in the meantime. */
  | { readonly kind: 'block'; readonly peer: P; readonly request: PendingRequest }
  | { readonly kind: 'refused'; readonly peer: P; readonly request: PendingRequest }
  | { readonly kind: 'request'; readonly peer: P; readonly block: BlockRef }
  | { readonly kind: 'cancel'; readonly peer: P; readonly block: BlockRef }
  | {
      readonly kind: 'extension'
      readonly peer: P
      readonly extension: ExtensionName
      readonly payload: Uint8Array
    }
  | { readonly kind: 'hash-request'; readonly peer: P; readonly range: HashRange }
  /** Hashes that we requested, or (undefined) the rejection of the request. */
  | { readonly kind: 'hashes'; readonly peer: P; readonly range: HashRange; readonly hashes: Uint8Array | undefined }
  /** The connection is over: the last event of every peer. */
  | { readonly kind: 'closed'; readonly peer: P; readonly error: Error | undefined }
