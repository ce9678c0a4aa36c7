import { Buffer } from 'node:buffer'
import type { HashRequest } from '@svc/metainfo'
import { MAX_REQUEST_HASHES } from '@svc/metainfo'

/** Message ids: BEP 3, 5 (port), 6 (fast extension), 10 (extended), 52 (hashes). */
export const MESSAGE = {
  choke: 0,
  unchoke: 1,
  interested: 2,
  notInterested: 3,
  have: 4,
  bitfield: 5,
  request: 6,
  piece: 7,
  cancel: 8,
  port: 9,
  suggest: 13,
  haveAll: 14,
  haveNone: 15,
  reject: 16,
  allowedFast: 17,
  extended: 20,
  hashRequest: 21,
  hashes: 22,
  hashReject: 23
} as const

/** Longest request between engines of this kind; others' is 16 KiB. One answer fills one frame (`upload/frame.ts`). */
export const MAX_REQUEST_BYTES = 262_144
/** Info dictionaries from peers are refused above this size (BEP 9). */
export const MAX_METADATA_BYTES = 4 * 1024 * 1024
const MAX_BITFIELD_BYTES = 262_144
const MAX_EXTENDED_BYTES = 65_536
/** Messages with unknown ids are skipped up to this length. */
export const MAX_UNKNOWN_BYTES = 1_048_576 + 13

/** A block of a piece: BEP 3 request, cancel and reject. */
export interface BlockRef {
  readonly piece: number
  readonly begin: number
  readonly length: number
}

/** A BEP 52 hash request with the pieces root of its file; the reject echoes it, and `hashes` starts with it. */
export interface HashRange extends HashRequest {
  /** 32 bytes. */
  readonly root: Uint8Array
}

/** Limits of the message body (including the id) by message id; an unknown id has none. */
export const BODY_BOUNDS: Readonly<Record<number, readonly [min: number, max: number]>> = {
  [MESSAGE.choke]: [1, 1],
  [MESSAGE.unchoke]: [1, 1],
  [MESSAGE.interested]: [1, 1],
  [MESSAGE.notInterested]: [1, 1],
  [MESSAGE.have]: [5, 5],
  [MESSAGE.bitfield]: [1, 1 + MAX_BITFIELD_BYTES],
  [MESSAGE.request]: [13, 13],
  [MESSAGE.piece]: [9, 9 + MAX_REQUEST_BYTES],
  [MESSAGE.cancel]: [13, 13],
  [MESSAGE.port]: [3, 3],
  [MESSAGE.suggest]: [5, 5],
  [MESSAGE.haveAll]: [1, 1],
  [MESSAGE.haveNone]: [1, 1],
  [MESSAGE.reject]: [13, 13],
  [MESSAGE.allowedFast]: [5, 5],
  [MESSAGE.extended]: [2, 1 + MAX_EXTENDED_BYTES],
  [MESSAGE.hashRequest]: [49, 49],
  // the requested hashes and at most one uncle per layer of a tree of 2^32 leaves.
  [MESSAGE.hashes]: [49 + 32, 49 + 32 * (MAX_REQUEST_HASHES + 32)],
  [MESSAGE.hashReject]: [49, 49]
}

export const KEEP_ALIVE: Uint8Array = Buffer.alloc(4)

function message(id: number, bodyBytes: number): Buffer {
  const out = Buffer.allocUnsafe(5 + bodyBytes)
  out.writeUInt32BE(1 + bodyBytes, 0)
  out[4] = id
  return out
}

/** A message without a payload: choke, unchoke, interested, notInterested, haveAll, haveNone. */
export const formatSimple = (id: number): Uint8Array => message(id, 0)

/** Have, suggest, allowedFast. */
export function formatIndex(id: number, piece: number): Uint8Array {
  const out = message(id, 4)
  out.writeUInt32BE(piece, 5)
  return out
}

export function formatBitfield(bits: Uint8Array): Uint8Array {
  const out = message(MESSAGE.bitfield, bits.length)
  out.set(bits, 5)
  return out
}

/** Request, cancel and reject share one shape. */
export function formatBlockRef(id: number, piece: number, begin: number, length: number): Uint8Array {
  const out = message(id, 12)
  out.writeUInt32BE(piece, 5)
  out.writeUInt32BE(begin, 9)
  out.writeUInt32BE(length, 13)
  return out
}

const REQUEST_BYTES = 17

/** Requests, one after the other. Written byte by byte: there is one for each 16 KiB that is fetched from others. */
export function formatRequests(blocks: readonly BlockRef[]): Uint8Array {
  const out = Buffer.allocUnsafe(REQUEST_BYTES * blocks.length)
  let at = 0
  for (const { piece, begin, length } of blocks) {
    writeU32(out, at, REQUEST_BYTES - 4)
    out[at + 4] = MESSAGE.request
    writeU32(out, at + 5, piece)
    writeU32(out, at + 9, begin)
    writeU32(out, at + 13, length)
    at += REQUEST_BYTES
  }
  return out
}

export const PIECE_HEADER_BYTES = 13

/** The 13 bytes before a block's bytes, in `out` from `at` on. */
export function formatPieceHeader(
  piece: number,
  begin: number,
  length: number,
  out: Buffer = Buffer.allocUnsafe(PIECE_HEADER_BYTES),
  at = 0
): Uint8Array {
  out.writeUInt32BE(9 + length, at)
  out[at + 4] = MESSAGE.piece
  out.writeUInt32BE(piece, at + 5)
  out.writeUInt32BE(begin, at + 9)
  return out
}

/** Extended message (BEP 10): `extendedId` 0 is the handshake. */
export function formatExtended(extendedId: number, payload: Uint8Array): Uint8Array {
  const out = message(MESSAGE.extended, 1 + payload.length)
  out[5] = extendedId
  out.set(payload, 6)
  return out
}

function writeRange(out: Buffer, range: HashRange): void {
  out.set(range.root, 5)
  out.writeUInt32BE(range.baseLayer, 37)
  out.writeUInt32BE(range.index, 41)
  out.writeUInt32BE(range.length, 45)
  out.writeUInt32BE(range.proofLayers, 49)
}

/** Hash request or hash reject. */
export function formatHashRange(id: number, range: HashRange): Uint8Array {
  const out = message(id, 48)
  writeRange(out, range)
  return out
}

/** `hashes`: the range followed by its hashes and uncles. */
export function formatHashes(range: HashRange, hashes: Uint8Array): Uint8Array {
  const out = message(MESSAGE.hashes, 48 + hashes.length)
  writeRange(out, range)
  out.set(hashes, 53)
  return out
}

function writeU32(out: Uint8Array, at: number, value: number): void {
  out[at] = value >>> 24
  out[at + 1] = value >>> 16
  out[at + 2] = value >>> 8
  out[at + 3] = value
}

/** Big-endian u32 at `at`; the caller has checked the length. */
export function readU32(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
}

/** The block of a request, cancel or reject; `body` is the message after its id, 12 bytes. */
export function parseBlockRef(body: Uint8Array): BlockRef {
  return { piece: readU32(body, 0), begin: readU32(body, 4), length: readU32(body, 8) }
}

/** The range at the start of a hash request, `hashes` or reject; `body` is the message after its id, at least 48 bytes. */
export function parseHashRange(body: Uint8Array): HashRange {
  return {
    root: new Uint8Array(body.subarray(0, 32)),
    baseLayer: readU32(body, 32),
    index: readU32(body, 36),
    length: readU32(body, 40),
    proofLayers: readU32(body, 44)
  }
}
