import type { LayoutFile, TorrentInfo } from '@svc/metainfo'
import type { Peer } from './peer/peer.ts'
import type { ConnectionEvent } from './peer/peer-event.ts'
import type { BlockRun, PieceBuffer } from './piece/piece-buffer.ts'

// Everything that happens in a torrent is one of these events. They flow in one direction, from the object that observes
// something to the one that decides about it:
//
//   Peer ─────────────────────────────────────────────► MetadataPhase ─┐
//   Peer, FileProgress, UploadQueue ──────────────────► ActivePhase ───┼─► Torrent ─► the user's listeners
//   Downloader, HashFetch, Webseed ─► Leeching ───────► ActivePhase ───┘
//
// Each level handles its own kinds of events and forwards the rest. Decisions come back as plain method calls on the
// objects below; an object never calls one above it. All bytes in an event are views that are valid during the call only.

export type PeerEvent = ConnectionEvent<Peer>

/** Events about pieces and files. */
export type PieceEvent =
  /** The piece is verified and written. */
  | { readonly kind: 'piece-verified'; readonly piece: number }
  /** All blocks of the piece arrived but do not fold to its hash; `leaves` are the hashes of the blocks. */
  | { readonly kind: 'piece-wrong'; readonly buffer: PieceBuffer; readonly leaves: Uint8Array }
  /** These blocks came from `sender`: requests for them to other sources can be cancelled. */
  | { readonly kind: 'answered'; readonly buffer: PieceBuffer; readonly run: BlockRun; readonly sender: number }
  /** Blocks became free, or receive memory was returned: ask the sources again. */
  | { readonly kind: 'work' }
  /** A webseed delivered this many bytes. */
  | { readonly kind: 'received'; readonly bytes: number }
  /** This many bytes of pieces were sent to a peer. */
  | { readonly kind: 'sent'; readonly bytes: number }
  /** A piece layer is proven. */
  | { readonly kind: 'layer'; readonly rootHex: string; readonly layer: Uint8Array }
  /** Every piece of the file is verified, and the storage accepted it. */
  | { readonly kind: 'file-done'; readonly file: LayoutFile }
  /** The storage refused a file although its pieces are right: they have to be fetched again. */
  | { readonly kind: 'file-refused'; readonly file: LayoutFile }
  /** The file can no longer be read, and is no longer offered to peers. */
  | { readonly kind: 'file-lost'; readonly fileIndex: number; readonly error: Error }

/** A problem that does not stop the torrent. */
export interface TorrentWarning {
  readonly kind: 'peer' | 'webseed' | 'discovery' | 'storage' | 'layers'
  /** Its source: an address, URL or path. */
  readonly source: string
  readonly message: string
  /** Its bytes were proven wrong, and it is no longer used. */
  readonly lied?: true
}

/** Events about the torrent as a whole. */
export type OutcomeEvent =
  | { readonly kind: 'metadata'; readonly info: TorrentInfo }
  /** Every file is complete in the storage. */
  | { readonly kind: 'complete' }
  /** A source (the id of a peer or webseed) sent data that is proven wrong; `piece` if it was data of a piece. */
  | {
      readonly kind: 'bad-data'
      readonly sender: number
      readonly reason: string
      readonly piece: number | undefined
    }
  | { readonly kind: 'warning'; readonly warning: TorrentWarning }
  /** The torrent cannot go on. */
  | { readonly kind: 'failed'; readonly error: Error }

type SwarmEvent = PeerEvent | PieceEvent | OutcomeEvent

export type EventOf<Kind extends SwarmEvent['kind']> = Extract<SwarmEvent, { readonly kind: Kind }>

/** A function that an object reports events of these kinds to. */
export type Emit<Kind extends SwarmEvent['kind']> = (event: EventOf<Kind>) => void
