import type { ExtensionName } from '../wire/extensions.ts'
import type { BlockRef, HashRange } from '../wire/messages.ts'
import type { PendingRequest } from './requests.ts'

/**
 * What a connection noticed. `P` is the connection itself, which carries itself in its events: a parameter, so that neither
 * file needs the other.
 */
export type ConnectionEvent<P> =
  /** The handshakes are made: the first event of every peer. */
  | { readonly kind: 'joined'; readonly peer: P }
  /** Its extended handshake came. */
  | { readonly kind: 'extended'; readonly peer: P }
  /** It has one more piece, or (undefined) told of its whole set. */
  | { readonly kind: 'pieces'; readonly peer: P; readonly piece: number | undefined }
  /** It became interested in us, or lost interest. */
  | { readonly kind: 'interest'; readonly peer: P }
  /** It choked or unchoked us; requests that the choke voids were `refused` before. */
  | { readonly kind: 'choke'; readonly peer: P }
  /** The answer to this request of ours is in the piece's buffer, as far as the piece was not taken away. */
  | { readonly kind: 'block'; readonly peer: P; readonly request: PendingRequest }
  /** This request of ours will not be answered. */
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
  /** Hashes that we asked for, or (undefined) their reject. */
  | { readonly kind: 'hashes'; readonly peer: P; readonly range: HashRange; readonly hashes: Uint8Array | undefined }
  /** The connection is over: the last event of every peer. */
  | { readonly kind: 'closed'; readonly peer: P; readonly error: Error | undefined }
