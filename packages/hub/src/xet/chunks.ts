import { XetAnswerError } from './answer-error.ts'
import type { BodyReader } from './body-reader.ts'
import { decodeLz4Frame } from './lz4-frame.ts'

const HEADER_BYTES = 8
/** Largest chunk, unpacked; a badly packed one may take twice as much. */
export const MAX_CHUNK_BYTES = 128 << 10
const MAX_PACKED_BYTES = 2 * MAX_CHUNK_BYTES

/** How a chunk is packed. */
const PLAIN = 0
const LZ4 = 1
const GROUPED_LZ4 = 2

/**
 * Unpacks the `count` chunks in `lengthBytes` of a xorb, one by one. Checks every length before it allocates anything of that length.
 * @throws XetAnswerError; errors of the network
 */
export async function* readChunks(
  body: BodyReader,
  { count, lengthBytes }: { readonly count: number; readonly lengthBytes: number }
): AsyncGenerator<Uint8Array> {
  let left = lengthBytes
  for (let i = 0; i < count; i++) {
    if (left < HEADER_BYTES) throw new XetAnswerError('a range of a xorb has fewer chunks than were named')
    const header = Buffer.from(await body.take(HEADER_BYTES))
    const [version, packedBytes, packing, rawBytes] = [
      header.readUInt8(0),
      header.readUIntLE(1, 3),
      header.readUInt8(4),
      header.readUIntLE(5, 3)
    ]
    left -= HEADER_BYTES + packedBytes
    if (version !== 0 || packing > GROUPED_LZ4) throw new XetAnswerError('a chunk has an unknown format')
    if (left < 0 || packedBytes > MAX_PACKED_BYTES) throw new XetAnswerError('a packed chunk is too long')
    if (rawBytes === 0 || rawBytes > MAX_CHUNK_BYTES) throw new XetAnswerError('a chunk has an impossible length')
    const packed = await body.take(packedBytes)
    if (packing === PLAIN && packedBytes !== rawBytes) throw new XetAnswerError('a plain chunk has two lengths')
    yield packing === PLAIN ? packed : unpack(packed, packing, rawBytes)
  }
  if (left !== 0) throw new XetAnswerError('a range of a xorb has more chunks than were named')
}

function unpack(packed: Uint8Array, packing: number, rawBytes: number): Uint8Array {
  const raw = decodeLz4Frame(packed, rawBytes)
  return packing === LZ4 ? raw : ungrouped(raw)
}

/** Undoes the grouping by 4: first every first byte of four, then every second, and so on. */
function ungrouped(grouped: Uint8Array): Uint8Array {
  const raw = new Uint8Array(grouped.length)
  for (let group = 0, from = 0; group < 4; group++)
    for (let to = group; to < raw.length; to += 4) raw[to] = grouped[from++]!
  return raw
}
