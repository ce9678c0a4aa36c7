/// <reference path="./untyped.d.ts" />

import { BencodeDictionary, decodeBencode, decodeBencodePrefix } from '@svc/metainfo'
import Wire from 'bittorrent-protocol'
import { SwarmV1Error } from '../errors.ts'
import { MAX_METADATA_BYTES } from '../layout.ts'

/** The internals of a connection of `bittorrent-protocol` 5 that are changed here. */
interface WireInternals {
  /** Bytes that the next message, or section of one, needs. */
  _parserSize: number
  _buffer: Uint8Array[]
  _bufferSize: number
  readonly _encryptor: { decrypt(bytes: Uint8Array): Uint8Array } | null
  readonly _cryptoSyncPattern: Uint8Array | null
  readonly requests: readonly { readonly piece: number; readonly offset: number; readonly length: number }[]
  readonly peerRequests: readonly unknown[]
  /** Names of the extensions by the ids that we assigned. */
  readonly extendedMapping: Readonly<Record<number, string>>
  readonly ut_pex?: {
    _remoteAddedPeers: Readonly<Record<string, unknown>>
    _remoteDroppedPeers: Readonly<Record<string, unknown>>
  }
  destroy(): void
  _write(bytes: Uint8Array, done: (error: null) => void): void
  _processBuffer(): void
  _onMessageLength(length: Uint8Array): void
  _onMessage(message: Uint8Array): void
}

/** The largest message: a bitfield of 2,000,000 pieces. */
const MAX_MESSAGE_BYTES = 262_144
const MAX_BLOCK_BYTES = 1 << 17
/** Shorter fragments of a message are joined as they come. */
const SHORT_BYTES = 1_024
const MAX_QUEUED_REQUESTS = 2_000
const METADATA_PIECE_BYTES = 1 << 14
const MAX_PEX_PEERS = 500
/** Added and dropped peers each, of one connection; messages may name 1,000 a minute. */
const MAX_PEX_KEPT = 2_000

/** Message length by id, for fixed lengths (BEP 3, 5, 6). */
const EXACT: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 1,
  3: 1,
  4: 5,
  6: 13,
  8: 13,
  9: 3,
  13: 5,
  14: 1,
  15: 1,
  16: 13,
  17: 5
}

/**
 * Limits what a peer of a BitTorrent v1 swarm may send. The library accepts any length up to 4 GiB, and copies a
 * partial message with each packet; here a message that is too long ends the connection before any of it is stored, and
 * long fragments are joined once. A message whose fields have other types or lengths than the library expects ends the
 * connection, too. Unsolicited blocks are dropped.
 *
 * @throws SwarmV1Error `E_SWARM_V1`, reason `client`: another version of the library than the tested one.
 */
export function boundWires(): void {
  const wire = (Wire as { readonly prototype: WireInternals }).prototype
  const { _onMessageLength: onLength, _onMessage: onMessage } = wire
  if (![onLength, onMessage, wire._write, wire._processBuffer].every((member) => typeof member === 'function')) {
    throw new SwarmV1Error('E_SWARM_V1', 'client', 'this version of bittorrent-protocol reads messages differently')
  }
  wire._write = function (this: WireInternals, bytes, done) {
    const plain = this._encryptor ? this._encryptor.decrypt(bytes) : bytes
    keep(this._buffer, plain)
    this._bufferSize += plain.length
    // a closed connection waits for an endless message.
    if (this._parserSize === Number.MAX_VALUE) {
      this._buffer = []
      this._bufferSize = 0
    } else if (this._bufferSize >= this._parserSize || this._cryptoSyncPattern) {
      this._buffer = [this._buffer.length === 1 ? this._buffer[0]! : new Uint8Array(Buffer.concat(this._buffer))]
      this._processBuffer()
    }
    done(null)
  }
  wire._onMessageLength = function (this: WireInternals, length) {
    if (Buffer.from(length).readUInt32BE() > MAX_MESSAGE_BYTES) end(this)
    else onLength.call(this, length)
  }
  wire._onMessage = function (this: WireInternals, message) {
    const verdict = judge(this, message)
    if (verdict === 'refuse') return end(this)
    // the library ignores unknown ids.
    onMessage.call(this, verdict === 'pass' ? message : UNKNOWN)
  }
}

/** A fragment takes some hundred bytes besides its own, so short ones are joined, each byte only a few times. */
function keep(fragments: Uint8Array[], latest: Uint8Array): void {
  let joined = latest
  while (joined.length < SHORT_BYTES && (fragments.at(-1)?.length ?? SHORT_BYTES) <= joined.length)
    joined = new Uint8Array(Buffer.concat([fragments.pop()!, joined]))
  fragments.push(joined)
}

/** Stops reading, including bytes that have already arrived. */
function end(wire: WireInternals): void {
  wire._parserSize = Number.MAX_VALUE
  wire.destroy()
}

/** A message with an unassigned id. */
const UNKNOWN = new Uint8Array([255])

type MessageVerdict = 'pass' | 'drop' | 'refuse'

function judge(wire: WireInternals, message: Uint8Array): MessageVerdict {
  const id = message[0]!
  const exact = EXACT[id]
  if (exact !== undefined && message.length !== exact) return 'refuse'
  if (id === 6 && wire.peerRequests.length >= MAX_QUEUED_REQUESTS) return 'refuse'
  if (id === 7) return judgeBlock(wire, message)
  if (id === 20) return message.length < 2 ? 'refuse' : judgeExtended(wire, message[1]!, message.subarray(2))
  return 'pass'
}

function judgeBlock(wire: WireInternals, message: Uint8Array): MessageVerdict {
  const length = message.length - 9
  if (length < 1 || length > MAX_BLOCK_BYTES) return 'refuse'
  const view = new DataView(message.buffer, message.byteOffset)
  const piece = view.getUint32(1)
  const offset = view.getUint32(5)
  const asked = wire.requests.some(
    (request) => request.piece === piece && request.offset === offset && request.length === length
  )
  return asked ? 'pass' : 'drop'
}

function judgeExtended(wire: WireInternals, id: number, payload: Uint8Array): MessageVerdict {
  const name = id === 0 ? 'handshake' : wire.extendedMapping[id]
  try {
    switch (name) {
      case 'handshake':
        return isHandshake(payload) ? 'pass' : 'refuse'
      case 'ut_metadata':
        return isMetadataMessage(payload) ? 'pass' : 'refuse'
      case 'ut_pex':
        if (!isPex(payload)) return 'refuse'
        forgetPex(wire)
        return 'pass'
      case 'lt_donthave':
        return payload.length === 4 ? 'pass' : 'refuse'
      default:
        return 'drop'
    }
  } catch {
    return 'refuse'
  }
}

const isAbsentOrWithin = (value: unknown, max: number): boolean =>
  value === undefined || (typeof value === 'number' && value >= 0 && value <= max)

function isHandshake(payload: Uint8Array): boolean {
  const value = decodeBencode(payload, { maxBytes: 16_384, maxDepth: 4, maxTokens: 400, allowUnsorted: true })
  if (!(value instanceof BencodeDictionary)) return false
  const mapping = value.get('m')
  if (!isAbsentOrWithin(value.get('metadata_size'), MAX_METADATA_BYTES)) return false
  if (mapping === undefined) return true
  return mapping instanceof BencodeDictionary && [...mapping.entries()].every(([, id]) => isAbsentOrWithin(id, 255))
}

function isMetadataMessage(payload: Uint8Array): boolean {
  const { value, endOffset } = decodeBencodePrefix(payload, {
    maxBytes: MAX_MESSAGE_BYTES,
    maxDepth: 1,
    maxTokens: 16,
    allowUnsorted: true
  })
  if (!(value instanceof BencodeDictionary)) return false
  const piece = value.get('piece')
  return (
    [0, 1, 2].includes(value.get('msg_type') as number) &&
    typeof piece === 'number' &&
    piece >= 0 &&
    piece * METADATA_PIECE_BYTES < MAX_METADATA_BYTES &&
    isAbsentOrWithin(value.get('total_size'), MAX_METADATA_BYTES) &&
    payload.length - endOffset <= METADATA_PIECE_BYTES
  )
}

/**
 * The library remembers what a peer named for as long as the connection lasts, to pass over it the next time. Forgotten
 * addresses are offered again, and passed over there.
 */
function forgetPex({ ut_pex: pex }: WireInternals): void {
  if (pex === undefined) return
  if (Object.keys(pex._remoteAddedPeers).length >= MAX_PEX_KEPT) pex._remoteAddedPeers = {}
  if (Object.keys(pex._remoteDroppedPeers).length >= MAX_PEX_KEPT) pex._remoteDroppedPeers = {}
}

/** The lists of a message of peer exchange, with the length of their entries. */
const PEX_LISTS = { added: 6, dropped: 6, added6: 18, dropped6: 18, 'added.f': 1, 'added6.f': 1 }

function isPex(payload: Uint8Array): boolean {
  const value = decodeBencode(payload, { maxBytes: 32_768, maxDepth: 2, maxTokens: 32, allowUnsorted: true })
  if (!(value instanceof BencodeDictionary)) return false
  return Object.entries(PEX_LISTS).every(([key, entryBytes]) => {
    const list = value.get(key) ?? new Uint8Array()
    return list instanceof Uint8Array && list.length % entryBytes === 0 && list.length <= entryBytes * MAX_PEX_PEERS
  })
}
