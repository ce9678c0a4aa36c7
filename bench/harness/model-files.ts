import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const RANDOM_BYTES = 8 << 20
let block: Buffer | undefined
let stamp = 0n

/** Incompressible bytes, no two files alike: one random block, with a running number in every 8 MiB of it. */
function writeBytes(fd: number, sizeBytes: number): void {
  block ??= randomFillSync(Buffer.allocUnsafe(RANDOM_BYTES))
  for (let left = sizeBytes; left > 0; ) {
    block.writeBigUInt64LE(++stamp)
    left -= writeSync(fd, block, 0, Math.min(left, RANDOM_BYTES))
  }
}

function writeModel(path: string, head: Uint8Array, sizeBytes: number): void {
  if (head.length > sizeBytes) throw new RangeError(`${sizeBytes} bytes do not hold the header of ${path}`)
  const fd = openSync(path, 'wx')
  try {
    writeSync(fd, head)
    writeBytes(fd, sizeBytes - head.length)
  } finally {
    closeSync(fd)
  }
}

/** A safetensors file of one BF16 tensor; the size includes its header and is even. */
export function writeSafetensors(folder: string, name: string, sizeBytes: number): string {
  const path = join(folder, name)
  const header = (length: number): string =>
    JSON.stringify({ w: { dtype: 'BF16', shape: [length / 2], data_offsets: [0, length] } })
  const room = 128
  const text = header(sizeBytes - 8 - room).padEnd(room)
  const head = Buffer.alloc(8 + room)
  head.writeBigUInt64LE(BigInt(room))
  head.write(text, 8)
  writeModel(path, head, sizeBytes)
  return path
}

/** A GGUF file without tensors or metadata; what follows its head is data all the same. */
export function writeGguf(folder: string, name: string, sizeBytes: number): string {
  const path = join(folder, name)
  const head = Buffer.alloc(24)
  head.write('GGUF')
  head.writeUInt32LE(3, 4)
  writeModel(path, head, sizeBytes)
  return path
}

/** A file of Python that the recognition takes as code. */
export function writeCode(folder: string, name: string, sizeBytes: number): string {
  const path = join(folder, name)
  writeModel(path, Buffer.from(`# ${name}\n`), sizeBytes)
  return path
}
