import type { DhtOptions } from '@svc/internal-discovery'
import { isHost, isPort, type PeerAddress } from '@svc/internal-net'

// The messages between the engine and its discovery threads: plain data. Messages from a thread are validated as if a
// stranger had sent them.

/** Start parameters of the DHT's thread. */
export type DhtThreadData = DhtOptions

export type ToDht =
  | { readonly kind: 'join'; readonly infohash: string; readonly port: number | undefined }
  | { readonly kind: 'leave'; readonly infohash: string }
  | { readonly kind: 'node'; readonly host: string; readonly port: number }
  | { readonly kind: 'close' }

export type FromDht =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'peer'; readonly infohash: string; readonly peer: PeerAddress; readonly allowPrivate: boolean }

/** The byte counts that announces report about a torrent. */
export interface Stats {
  readonly uploaded: number
  readonly downloaded: number
  readonly left: number
}

export type ToTrackers =
  | {
      readonly kind: 'join'
      readonly id: number
      readonly urls: readonly string[]
      readonly infohash: Uint8Array
      readonly peerId: Uint8Array
      readonly port: number
      readonly stats: Stats
    }
  | { readonly kind: 'stats'; readonly id: number; readonly stats: Stats }
  | { readonly kind: 'completed'; readonly id: number; readonly stats: Stats }
  | { readonly kind: 'leave'; readonly id: number; readonly stats: Stats }
  | { readonly kind: 'close' }

export type FromTrackers =
  | { readonly kind: 'peer'; readonly id: number; readonly peer: PeerAddress; readonly allowPrivate: boolean }
  | { readonly kind: 'warning'; readonly id: number; readonly message: string }
  | { readonly kind: 'left'; readonly id: number }

const MAX_MESSAGE_CHARACTERS = 500

/** @throws TypeError unless it is a {@link FromDht}. */
export function parseFromDht(message: unknown): FromDht {
  const { kind, port, infohash, peer, allowPrivate } = fields(message)
  if (kind === 'listening' && isPortNumber(port)) return { kind, port }
  if (kind === 'peer' && typeof infohash === 'string' && typeof allowPrivate === 'boolean') {
    return { kind, infohash, peer: parsePeer(peer), allowPrivate }
  }
  throw unknownMessage(kind)
}

/** @throws TypeError unless it is a {@link FromTrackers}. */
export function parseFromTrackers(message: unknown): FromTrackers {
  const { kind, id, peer, allowPrivate, message: text } = fields(message)
  if (typeof id !== 'number') throw unknownMessage(kind)
  if (kind === 'left') return { kind, id }
  if (kind === 'warning' && typeof text === 'string')
    return { kind, id, message: text.slice(0, MAX_MESSAGE_CHARACTERS) }
  if (kind === 'peer' && typeof allowPrivate === 'boolean') return { kind, id, peer: parsePeer(peer), allowPrivate }
  throw unknownMessage(kind)
}

function parsePeer(value: unknown): PeerAddress {
  const { host, port } = fields(value)
  if (typeof host !== 'string' || !isHost(host) || !isPortNumber(port)) throw new TypeError('a thread named no address')
  return { host, port }
}

function fields(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw new TypeError('a thread sent no object')
  return value as Readonly<Record<string, unknown>>
}

const isPortNumber = (value: unknown): value is number => typeof value === 'number' && isPort(value)

const unknownMessage = (kind: unknown): TypeError => new TypeError(`a thread sent an unknown message: ${String(kind)}`)
