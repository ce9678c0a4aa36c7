import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const RANDOM_BYTES = 8 << 20
let block: Buffer | undefined
let stamp = 0n

/** Incompressible data without duplicates: one random block of 8 MiB, repeated with a running number in each copy. */
function writeBytes(fd: number, sizeBytes: number): void {
  block ??= randomFillSync(Buffer.allocUnsafe(RANDOM_BYTES))
  for (let left = sizeBytes; left > 0; ) {
    block.writeBigUInt64LE(++stamp)
    left -= writeSync(fd, block, 0, Math.min(left, RANDOM_BYTES))
  }
}

function writeModel(path: string, head: Uint8Array, sizeBytes: number): void {
  if (head.length > sizeBytes) throw new RangeError(`${sizeBytes} bytes are too few for the header of ${path}`)
  const fd = openSync(path, 'wx')
  try {
    writeSync(fd, head)
    writeBytes(fd, sizeBytes - head.length)
  } finally {
    closeSync(fd)
  }
}

/** Writes a safetensors file with one BF16 tensor. @param sizeBytes even, header included */
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

/** Writes a GGUF file without tensors or metadata, padded with data to its size. */
export function writeGguf(folder: string, name: string, sizeBytes: number): string {
  const path = join(folder, name)
  const head = Buffer.alloc(24)
  head.write('GGUF')
  head.writeUInt32LE(3, 4)
  writeModel(path, head, sizeBytes)
  return path
}

/** Writes a Python file, which the importer classifies as code. */
export function writeCode(folder: string, name: string, sizeBytes: number): string {
  const path = join(folder, name)
  writeModel(path, Buffer.from(`# ${name}\n`), sizeBytes)
  return path
}
