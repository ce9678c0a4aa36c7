import { XetAnswerError } from './answer-error.ts'

const MAGIC = 0x184d2204
/** Sizes of a frame's optional parts. */
const CHECKSUM_BYTES = 4
const CONTENT_SIZE_BYTES = 8
const MIN_MATCH = 4

/**
 * Decompresses an LZ4 frame into exactly `rawBytes`: no input makes it allocate, write or read more. Does not compare checksums, as the
 * SHA-256 of the file decides. Refuses frames with a dictionary, and bytes after the end. @throws XetAnswerError
 */
export function decodeLz4Frame(frame: Uint8Array, rawBytes: number): Uint8Array {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
  const { headBytes, blockTrailer, trailer } = headOf(view)
  const output = new Uint8Array(rawBytes)
  let filled = 0
  let at = headBytes
  for (;;) {
    if (at + 4 > frame.length) throw broken('has an LZ4 frame without an end')
    const word = view.getUint32(at, true)
    at += 4
    if (word === 0) break
    const size = word & 0x7fffffff
    const end = at + size
    if (end + blockTrailer > frame.length) throw broken('has an LZ4 block that is cut off')
    const block = frame.subarray(at, end)
    if (word >>> 31 === 0) filled = decodeBlock(block, output, filled)
    else if (filled + size > rawBytes) throw tooLong()
    else {
      output.set(block, filled)
      filled += size
    }
    at = end + blockTrailer
  }
  if (filled !== rawBytes || at + trailer !== frame.length)
    throw broken('has an LZ4 frame of another length than it says')
  return output
}

/** How long the head is, and what follows each block and the last one. */
function headOf(view: DataView): {
  readonly headBytes: number
  readonly blockTrailer: number
  readonly trailer: number
} {
  if (view.byteLength < 7 || view.getUint32(0, true) !== MAGIC) throw broken('has no LZ4 frame')
  const flags = view.getUint8(4)
  if (flags >> 6 !== 1 || (flags & 1) !== 0) throw broken('has an LZ4 frame of another version, or with a dictionary')
  return {
    headBytes: 7 + ((flags & 8) === 0 ? 0 : CONTENT_SIZE_BYTES),
    blockTrailer: (flags & 16) === 0 ? 0 : CHECKSUM_BYTES,
    trailer: (flags & 4) === 0 ? 0 : CHECKSUM_BYTES
  }
}

/** Appends a block, whose matches may reach back into earlier ones. @returns the new end of what is filled */
function decodeBlock(block: Uint8Array, output: Uint8Array, start: number): number {
  let at = 0
  let to = start
  const next = (): number => {
    if (at >= block.length) throw broken('has an LZ4 block that is cut off')
    return block[at++]!
  }
  /** Lengths from 15 go on in further bytes. */
  const lengthFrom = (nibble: number): number => {
    let length = nibble
    for (let more = nibble === 15 ? 255 : 0; more === 255; length += more) {
      more = next()
      if (length > output.length) throw tooLong()
    }
    return length
  }
  while (at < block.length) {
    const token = next()
    const literals = lengthFrom(token >> 4)
    if (at + literals > block.length) throw broken('has an LZ4 block that is cut off')
    if (to + literals > output.length) throw tooLong()
    output.set(block.subarray(at, at + literals), to)
    at += literals
    to += literals
    if (at === block.length) return to
    const back = next() | (next() << 8)
    const matched = lengthFrom(token & 15) + MIN_MATCH
    if (back === 0 || back > to) throw broken('has an LZ4 match before the start')
    if (to + matched > output.length) throw tooLong()
    if (back >= matched) output.copyWithin(to, to - back, to - back + matched)
    else for (let i = 0; i < matched; i++) output[to + i] = output[to + i - back]!
    to += matched
  }
  return to
}

const broken = (what: string): XetAnswerError => new XetAnswerError(`a chunk ${what}`)
const tooLong = (): XetAnswerError => broken('is longer than its header says')
