/** The fields of a header. */
export interface TarEntry {
  readonly name: string
  readonly sizeBytes: number
  readonly type: string
}

const utf8 = new TextDecoder()

/** Parses a header block: undefined for a block of zeros, 'bad' for an invalid one. */
export function readTarHeader(block: Uint8Array): TarEntry | undefined | 'bad' {
  if (block.every((byte) => byte === 0)) return undefined
  const sum = /^ *([0-7]{1,7})[\0 ]/.exec(characters(block, 148, 156))?.[1]
  const counted = block.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 0x20 : byte), 0)
  if (sum === undefined || Number.parseInt(sum, 8) !== counted) return 'bad'
  const sizeBytes = sizeOf(block)
  if (sizeBytes === undefined) return 'bad'
  const prefix = characters(block, 257, 262) === 'ustar' && block[263] !== 0x20 ? text(block, 345, 500) : ''
  const name = text(block, 0, 100)
  return { name: prefix === '' ? name : `${prefix}/${name}`, sizeBytes, type: String.fromCharCode(block[156]!) }
}

const characters = (block: Uint8Array, from: number, to: number): string =>
  String.fromCharCode(...block.subarray(from, to))

function text(block: Uint8Array, from: number, to: number): string {
  const end = block.indexOf(0, from)
  return utf8.decode(block.subarray(from, end < 0 || end > to ? to : end))
}

/** Octal, or the base-256 form that GNU tar and Go write for large sizes. */
function sizeOf(block: Uint8Array): number | undefined {
  if (block[124] === 0x80) {
    const size = new DataView(block.buffer, block.byteOffset).getBigUint64(128)
    const isWhole = block.subarray(125, 128).every((byte) => byte === 0)
    return isWhole && size <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(size) : undefined
  }
  const octal = /^ *([0-7]{1,12})(?:[\0 ]|$)/.exec(characters(block, 124, 136))?.[1]
  return octal === undefined ? undefined : Number.parseInt(octal, 8)
}
