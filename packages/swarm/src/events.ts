import type { LayoutFile, TorrentInfo } from '@svc/metainfo'
import type { Peer } from './peer/peer.ts'
import type { ConnectionEvent } from './peer/peer-event.ts'
import type { BlockRun, PieceBuffer } from './piece/piece-buffer.ts'

// Everything that happens in a torrent is one of these events, and they flow one way, from whoever notices something to
// whoever decides about it:
//
//   Peer, MetadataFetch ────────────────────────────► MetadataPhase ─┐
//   Peer, FileProgress, UploadQueue ──────────────────► ActivePhase ─┼─► Torrent ─► the user's listeners
//   Downloader, HashFetch, Webseed ─► Leeching ───────► ActivePhase ─┘
//
// Each level acts on the kinds that it decides about and passes the rest on. What is decided comes back as plain method
// calls on the objects below; an object never calls what is above it, nor asks it for anything. All bytes in an event are views
// that are valid during the call.

/** A connection noticed something. */
export type PeerEvent = ConnectionEvent<Peer>

/** Something changed about pieces and files. */
export type PieceEvent =
  /** The piece is right and written. */
  | { readonly kind: 'piece-verified'; readonly piece: number }
  /** All blocks of the piece are here and do not fold to its hash; `leaves` are what they hash to. */
  | { readonly kind: 'piece-wrong'; readonly buffer: PieceBuffer; readonly leaves: Uint8Array }
  /** These blocks came from `sender`: others who were asked for them need not send them. */
  | { readonly kind: 'answered'; readonly buffer: PieceBuffer; readonly run: BlockRun; readonly sender: number }
  /** Blocks became free, or receive memory came back: sources may be asked again. */
  | { readonly kind: 'work' }
  /** A webseed delivered this many bytes. */
  | { readonly kind: 'received'; readonly bytes: number }
  /** This many bytes of pieces went out to a peer. */
  | { readonly kind: 'sent'; readonly bytes: number }
  /** A piece layer is proven. */
  | { readonly kind: 'layer'; readonly rootHex: string; readonly layer: Uint8Array }
  /** Every piece of the file is there and the storage took it. */
  | { readonly kind: 'file-done'; readonly file: LayoutFile }
  /** The storage refused a file whose pieces are all right: they are to be fetched again. */
  | { readonly kind: 'file-refused'; readonly file: LayoutFile }
  /** The file cannot be read any more: it is not offered to others from now on. */
  | { readonly kind: 'file-lost'; readonly fileIndex: number; readonly error: Error }

/** Something that went wrong and does not stop the torrent. */
export interface TorrentWarning {
  readonly kind: 'peer' | 'webseed' | 'discovery' | 'storage' | 'layers'
  /** Who: address, URL or path. */
  readonly source: string
  readonly message: string
  /** Its bytes were proven wrong: it is no source any more. */
  readonly lied?: true
}

/** What a torrent as a whole comes to. */
export type OutcomeEvent =
  /** The info dictionary is known. */
  | { readonly kind: 'metadata'; readonly info: TorrentInfo }
  /** Every file is in the storage. */
  | { readonly kind: 'complete' }
  /** A source (a peer's or a webseed's id) sent data that is proven wrong; `piece` where it was data of a piece. */
  | {
      readonly kind: 'bad-data'
      readonly sender: number
      readonly reason: string
      readonly piece: number | undefined
    }
  | { readonly kind: 'warning'; readonly warning: TorrentWarning }
  /** The torrent cannot go on. */
  | { readonly kind: 'failed'; readonly error: Error }

/** Everything that can happen in a torrent. */
type SwarmEvent = PeerEvent | PieceEvent | OutcomeEvent

/** The events of some kinds. */
export type EventOf<Kind extends SwarmEvent['kind']> = Extract<SwarmEvent, { readonly kind: Kind }>

/** Where an object sends its events of these kinds. */
export type Emit<Kind extends SwarmEvent['kind']> = (event: EventOf<Kind>) => void
