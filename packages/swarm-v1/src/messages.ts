import { isHost, isPort } from '@svc/internal-net'
import { MAX_METADATA_BYTES, MAX_PIECE_LENGTH } from './layout.ts'

// The messages between a `V1Swarm` and its thread: plain data. Messages from the thread are validated as if a stranger
// had sent them.

export interface V1ThreadData {
  readonly host: string
  readonly port: number
  /** Bootstrap nodes of the DHT; undefined: no DHT and no peer exchange. */
  readonly dhtBootstrap: readonly string[] | undefined
  readonly policy: 'machine' | 'network' | 'internet'
  readonly uploadLimitBytesPerSecond: number
  /** Of the limit of downloads, if there is one. */
  readonly limit: SharedArrayBuffer | undefined
}

export type ToThread =
  | {
      readonly kind: 'join'
      readonly id: number
      readonly infohash: string
      readonly info: Uint8Array | undefined
      readonly trackers: readonly string[]
      readonly policy: 'internet' | undefined
      readonly peers: readonly string[]
      readonly quiet: boolean
      readonly complete: boolean
    }
  /** The layout is accepted and the storage open. */
  | { readonly kind: 'opened'; readonly id: number; readonly upload: boolean }
  /** The answer to `get`; undefined when the bytes are not there. */
  | { readonly kind: 'got'; readonly call: number; readonly bytes: Uint8Array | undefined }
  | { readonly kind: 'stored'; readonly call: number }
  | { readonly kind: 'peer'; readonly id: number; readonly address: string }
  | { readonly kind: 'leave'; readonly id: number }
  | { readonly kind: 'close' }

/** Progress of a torrent. */
export interface V1Progress {
  readonly peers: number
  readonly downBytesPerSecond: number
  readonly upBytesPerSecond: number
  readonly uploadedBytes: number
  /** Bytes that have arrived of pieces that are not verified yet. */
  readonly unverifiedBytes: number
}

export type FromThread =
  | { readonly kind: 'listening'; readonly host: string; readonly port: number }
  /** The address is unavailable for listening. */
  | { readonly kind: 'unable'; readonly message: string }
  /** The info dictionary, which the receiver checks against the infohash. */
  | { readonly kind: 'metadata'; readonly id: number; readonly info: Uint8Array }
  | {
      readonly kind: 'get'
      readonly id: number
      readonly call: number
      readonly piece: number
      readonly offset: number
      readonly length: number
    }
  | {
      readonly kind: 'put'
      readonly id: number
      readonly call: number
      readonly piece: number
      readonly bytes: Uint8Array
    }
  | { readonly kind: 'progress'; readonly id: number; readonly progress: V1Progress }
  | { readonly kind: 'warning'; readonly id: number; readonly message: string }
  /** Every piece is verified and stored. */
  | { readonly kind: 'done'; readonly id: number }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }
  | { readonly kind: 'left'; readonly id: number }

const MAX_TEXT = 500

/** @throws TypeError unless it is a {@link FromThread} within its limits. */
export function parseFromThread(message: unknown): FromThread {
  if (typeof message !== 'object' || message === null) throw new TypeError('the thread sent no object')
  const fields = message as Readonly<Record<string, unknown>>
  const { kind } = fields
  switch (kind) {
    case 'listening': {
      const { host, port } = fields
      if (typeof host === 'string' && isHost(host) && isPort(port as number))
        return { kind, host, port: port as number }
      break
    }
    case 'unable':
      return { kind, message: text(fields.message) }
    case 'metadata':
      return { kind, id: count(fields.id), info: bytes(fields.info, MAX_METADATA_BYTES) }
    case 'get':
      return {
        kind,
        id: count(fields.id),
        call: count(fields.call),
        piece: count(fields.piece),
        offset: count(fields.offset, MAX_PIECE_LENGTH),
        length: count(fields.length, MAX_PIECE_LENGTH)
      }
    case 'put':
      return {
        kind,
        id: count(fields.id),
        call: count(fields.call),
        piece: count(fields.piece),
        bytes: bytes(fields.bytes, MAX_PIECE_LENGTH)
      }
    case 'progress':
      return { kind, id: count(fields.id), progress: parseProgress(fields.progress) }
    case 'warning':
    case 'failed':
      return { kind, id: count(fields.id), message: text(fields.message) }
    case 'done':
    case 'left':
      return { kind, id: count(fields.id) }
  }
  throw new TypeError(`the thread sent an unknown message: ${String(kind)}`)
}

function parseProgress(value: unknown): V1Progress {
  const { peers, downBytesPerSecond, upBytesPerSecond, uploadedBytes, unverifiedBytes } = (value ?? {}) as Record<
    string,
    unknown
  >
  return {
    peers: count(peers),
    downBytesPerSecond: count(downBytesPerSecond),
    upBytesPerSecond: count(upBytesPerSecond),
    uploadedBytes: count(uploadedBytes),
    unverifiedBytes: count(unverifiedBytes)
  }
}

function count(value: unknown, max = Number.MAX_SAFE_INTEGER): number {
  if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max) return value as number
  throw new TypeError('the thread did not send a number')
}

function bytes(value: unknown, max: number): Uint8Array {
  if (value instanceof Uint8Array && value.length <= max) return value
  throw new TypeError('the thread did not send bytes')
}

function text(value: unknown): string {
  if (typeof value === 'string') return value.slice(0, MAX_TEXT)
  throw new TypeError('the thread did not send a text')
}
