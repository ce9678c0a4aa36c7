import { createHash } from 'node:crypto'

const MIN_BYTES = 8 << 10
const MAX_BYTES = 128 << 10

/** Of our own making: where a client's chunks end is nothing that others compare. */
const GEAR = Int32Array.from({ length: 256 }, (_, i) =>
  createHash('sha256').update(`gear ${i}`).digest().readInt32LE(0)
)

/** Cuts bytes where a Gearhash has 16 zero bits at its top: chunks of 64 KiB on average, which an insertion moves but does not change. */
export function* chunksOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; ) {
    const end = Math.min(bytes.length, start + MAX_BYTES)
    let hash = 0
    let at = Math.min(end, start + MIN_BYTES - 64)
    for (; at < end; at++) {
      hash = ((hash << 1) + GEAR[bytes[at]!]!) | 0
      if (at >= start + MIN_BYTES && (hash & 0xffff0000) === 0) break
    }
    const next = Math.min(end, at + 1)
    yield bytes.subarray(start, next)
    start = next
  }
}

export type Packing = 'plain' | 'lz4' | 'grouped'
const PACKINGS: readonly Packing[] = ['plain', 'lz4', 'grouped']

/** A chunk as xorbs have it: a header of 8 bytes, and the packed bytes, or the plain ones where those are fewer. */
export function packChunk(raw: Uint8Array, packing: Packing): Buffer {
  const packed = packing === 'plain' ? raw : lz4Frame(packing === 'grouped' ? grouped(raw) : Buffer.from(raw))
  const isPlain = packed.length >= raw.length
  const header = Buffer.alloc(8)
  header.writeUIntLE(isPlain ? raw.length : packed.length, 1, 3)
  header[4] = isPlain ? 0 : PACKINGS.indexOf(packing)
  header.writeUIntLE(raw.length, 5, 3)
  return Buffer.concat([header, isPlain ? raw : packed])
}

function grouped(raw: Uint8Array): Buffer {
  const out = Buffer.alloc(raw.length)
  for (let group = 0, to = 0; group < 4; group++) for (let at = group; at < raw.length; at += 4) out[to++] = raw[at]!
  return out
}

/** Version 1, independent blocks of 64 KiB at most, no checksums; the last byte is that of this head. */
const FRAME_HEAD = Buffer.from('04224d18604082', 'hex')
const BLOCK_BYTES = 64 << 10

function lz4Frame(raw: Buffer): Buffer {
  const parts: Buffer[] = [FRAME_HEAD]
  for (let at = 0; at < raw.length; at += BLOCK_BYTES) {
    const plain = raw.subarray(at, at + BLOCK_BYTES)
    const block = lz4Block(plain)
    const size = Buffer.alloc(4)
    const isPlain = block.length >= plain.length
    size.writeUInt32LE(((isPlain ? plain : block).length | (isPlain ? 0x80000000 : 0)) >>> 0)
    parts.push(size, isPlain ? plain : block)
  }
  return Buffer.concat([...parts, Buffer.alloc(4)])
}

/** Greedy: the latest earlier place of the next four bytes. */
function lz4Block(raw: Buffer): Buffer {
  const parts: Buffer[] = []
  const places = new Int32Array(1 << 13).fill(-1)
  const lengthBytes = (length: number): number[] =>
    length < 15 ? [] : [...Array<number>(Math.floor((length - 15) / 255)).fill(255), (length - 15) % 255]
  let anchor = 0
  const emit = (end: number, back: number, matched: number): void => {
    const literals = end - anchor
    const more = back === 0 ? 0 : matched - 4
    const token = (Math.min(15, literals) << 4) | Math.min(15, more)
    parts.push(Buffer.from([token, ...lengthBytes(literals)]), raw.subarray(anchor, end))
    if (back > 0) parts.push(Buffer.from([back & 255, back >> 8, ...lengthBytes(more)]))
  }
  for (let at = 0; at < raw.length - 12; ) {
    const next = raw.readUInt32LE(at)
    const slot = Math.imul(next, 2654435761) >>> 19
    const known = places[slot]!
    places[slot] = at
    if (known < 0 || at - known > 65_535 || raw.readUInt32LE(known) !== next) {
      at += 1 + ((at - anchor) >> 6)
      continue
    }
    let matched = 4
    while (at + matched < raw.length - 5 && raw[at + matched] === raw[known + matched]) matched++
    emit(at, at - known, matched)
    at += matched
    anchor = at
  }
  emit(raw.length, 0, 0)
  return Buffer.concat(parts)
}
