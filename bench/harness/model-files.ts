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

/** Writes a safetensors file with BF16 tensors of one size, about. @param sizeBytes even, header included */
export function writeSafetensors(folder: string, name: string, sizeBytes: number, tensors = 1): string {
  const path = join(folder, name)
  const room = 128 * tensors
  const length = sizeBytes - 8 - room
  const at = (index: number): number => 2 * Math.floor((length / 2) * (index / tensors))
  const header = Array.from({ length: tensors }, (_, i) => {
    const data_offsets = [at(i), at(i + 1)] as const
    return [`w${i}`, { dtype: 'BF16', shape: [(data_offsets[1] - data_offsets[0]) / 2], data_offsets }]
  })
  const head = Buffer.alloc(8 + room)
  head.writeBigUInt64LE(BigInt(room))
  head.write(JSON.stringify(Object.fromEntries(header)).padEnd(room), 8)
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
