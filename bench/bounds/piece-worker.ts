// A thread of `bare-peer.ts`: hashes the blocks of a piece and writes it, or makes the flat hash.
import { createHash } from 'node:crypto'
import { writeSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { BLOCK_BYTES, HASH_BYTES, sha256Into } from '@svc/metainfo'

interface Job {
  readonly buffer: SharedArrayBuffer
  readonly length: number
  readonly flat?: true
  readonly fd: number
  readonly position: number
}

const WRITE_BYTES = 128 << 10
const whole = createHash('sha256')

parentPort!.on('message', ({ buffer, length, flat, fd, position }: Job) => {
  const bytes = new Uint8Array(buffer, 0, length)
  if (flat) {
    whole.update(bytes)
    return parentPort!.postMessage('hashed')
  }
  const leaves = new Uint8Array(Math.ceil(length / BLOCK_BYTES) * HASH_BYTES)
  for (let at = 0; at < length; at += BLOCK_BYTES) {
    sha256Into(bytes.subarray(at, Math.min(at + BLOCK_BYTES, length)), leaves, (at / BLOCK_BYTES) * HASH_BYTES)
  }
  for (let at = 0; at < length; at += WRITE_BYTES) {
    writeSync(fd, bytes, at, Math.min(WRITE_BYTES, length - at), position + at)
  }
  parentPort!.postMessage(position)
})
