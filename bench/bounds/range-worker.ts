// A thread of `hub-process.ts`: fetches ranges and hashes their blocks, or follows with the flat hash.
import { createHash, hash } from 'node:crypto'
import { readSync, writeSync } from 'node:fs'
import { connect } from 'node:tls'
import { parentPort, workerData } from 'node:worker_threads'
import { BLOCK_BYTES, type Download, RANGE_BYTES } from './download-plan.ts'

const { download, follows } = workerData as { readonly download: Download; readonly follows: boolean }
const { url, sizeBytes, fd, written, next } = download
const LEAF_BYTES = 16_384
const CONNECTIONS = 4
const HEAD_BYTES = 16_384

function follow(): void {
  const whole = createHash('sha256')
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
  for (let at = 0; at < written.length; at++) {
    while (Atomics.load(written, at) === 0) Atomics.wait(written, at, 0)
    whole.update(block.subarray(0, readSync(fd, block, 0, BLOCK_BYTES, at * BLOCK_BYTES)))
  }
  whole.digest()
}

/** Ranges start at multiples of a block, so that each block is written at once. */
function keep(block: Buffer, length: number, position: number): void {
  for (let at = 0; at < length; at += LEAF_BYTES) {
    hash('sha256', block.subarray(at, Math.min(at + LEAF_BYTES, length)), 'binary')
  }
  writeSync(fd, block, 0, length, position)
  Atomics.store(written, position / BLOCK_BYTES, 1)
  Atomics.notify(written, position / BLOCK_BYTES)
}

function connection(): Promise<void> {
  const { hostname, port, host, pathname } = new URL(url)
  const block = Buffer.allocUnsafeSlow(BLOCK_BYTES)
  const head = Buffer.allocUnsafeSlow(HEAD_BYTES)
  let [inHead, filled, left, at] = [true, 0, 0, 0]
  return new Promise((resolve, reject) => {
    const ask = (): void => {
      at = Atomics.add(next, 0, 1) * RANGE_BYTES
      if (at >= sizeBytes) return resolve(void socket.destroy())
      inHead = true
      const last = Math.min(sizeBytes, at + RANGE_BYTES) - 1
      socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\nrange: bytes=${at}-${last}\r\n\r\n`)
    }
    const read = (count: number): void => {
      if (inHead) {
        const end = head.indexOf('\r\n\r\n') + 4
        const text = head.toString('latin1', 0, Math.max(0, end))
        if (end < 4 || !text.startsWith('HTTP/1.1 206')) throw new Error(`no plain answer: ${text}`)
        left = Number(/content-length: (\d+)/i.exec(text)![1]) - (count - end)
        filled = count - end
        head.copy(block, 0, end, count)
        inHead = false
      } else {
        filled += count
        left -= count
      }
      if (filled < BLOCK_BYTES && left > 0) return
      keep(block, filled, at)
      at += filled
      filled = 0
      if (left === 0) ask()
    }
    const options = {
      host: hostname,
      port: Number(port),
      onread: {
        buffer: () => (inHead ? head : block.subarray(filled, Math.min(BLOCK_BYTES, filled + left))),
        callback: (count: number) => {
          try {
            read(count)
          } catch (error) {
            reject(error)
          }
          return true
        }
      }
    }
    const socket = connect(options)
    socket.once('secureConnect', ask)
    socket.once('error', reject)
  })
}

parentPort!.once('message', async () => {
  if (follows) follow()
  else await Promise.all(Array.from({ length: CONNECTIONS }, connection))
  parentPort!.postMessage('done')
})
parentPort!.postMessage('ready')
