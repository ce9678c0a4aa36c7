// What a seed and a leech cannot leave out, and nothing else: told by the JSON lines of `../swarm/engine-peer.ts`, one sends a file over TCP, read
// in pieces from the page cache; the other receives it, hashes its blocks in two threads, writes it and syncs it. No
// protocol, no choice of pieces, no limits, no errors. With the word `flat` the file's SHA-256 is made as well, as the daemon does.
import { closeSync, constants, fdatasyncSync, mkdirSync, openSync, readFileSync, readSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { parseTorrent, TorrentLayout } from '@svc/metainfo'
import { obey, tell } from './peer-commands.ts'

// The heap of the engine's process beside this one
setFlagsFromString('--max-semi-space-size=1')
setFlagsFromString('--semi-space-growth-factor=1')

const WORKER = new URL('./piece-worker.ts', import.meta.url)
const THREAD = { trackUnmanagedFds: false, execArgv: [] }
const READ_BYTES = 256 << 10
const THREADS = 2
/** Pieces that are being received, hashed or written. */
const SLOTS = 6
const flat = process.argv.includes('flat')

let served: string | undefined
const server = createServer({ noDelay: true }, (socket) => {
  const fd = openSync(served!, 'r')
  const block = Buffer.allocUnsafeSlow(READ_BYTES)
  let sent = 0
  const next = (): void => {
    const count = readSync(fd, block, 0, READ_BYTES, sent)
    sent += count
    if (count > 0) return void socket.write(count === READ_BYTES ? block : block.subarray(0, count), next)
    closeSync(fd)
    socket.end()
  }
  socket.on('error', () => undefined)
  next()
})
server.listen(0, '127.0.0.1', () => tell({ event: 'ready', port: (server.address() as AddressInfo).port }))

function fetch(port: number, target: string, sizeBytes: number, pieceBytes: number): void {
  mkdirSync(path.dirname(target), { recursive: true })
  const fd = openSync(target, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC)
  const threads = Array.from({ length: THREADS }, () => new Worker(WORKER, THREAD))
  const flatThread = flat ? new Worker(WORKER, THREAD) : undefined
  const free: Buffer[] = Array.from({ length: SLOTS }, () => Buffer.from(new SharedArrayBuffer(pieceBytes)))
  const written = new Map<number, Buffer>()
  let slot = free.pop()
  let [filled, received, flatAt, left] = [0, 0, 0, Math.ceil(sizeBytes / pieceBytes)]
  const release = (buffer: Buffer): void => {
    free.push(buffer)
    if (--left === 0) {
      fdatasyncSync(fd)
      closeSync(fd)
      tell({ event: 'finished' })
    } else if (slot === undefined) {
      slot = free.pop()
      socket.resume()
    }
  }
  const lengthAt = (position: number): number => Math.min(pieceBytes, sizeBytes - position)
  let following = false
  const follow = (): void => {
    const buffer = written.get(flatAt)
    following = buffer !== undefined
    if (buffer === undefined) return
    written.delete(flatAt)
    flatThread!.postMessage({ buffer: buffer.buffer, length: lengthAt(flatAt), flat: true })
    flatThread!.once('message', () => {
      release(buffer)
      follow()
    })
    flatAt += pieceBytes
  }
  const slots = new Map<number, Buffer>()
  for (const thread of threads) {
    thread.on('message', (position: number) => {
      const buffer = slots.get(position)!
      slots.delete(position)
      if (flatThread === undefined) return release(buffer)
      written.set(position, buffer)
      if (!following) follow()
    })
  }
  const aside = Buffer.allocUnsafeSlow(READ_BYTES)
  let isAside = false
  const socket = connect({
    host: '127.0.0.1',
    port,
    onread: {
      // straight into the slot, and no read goes beyond it; while there is none, the next read is prepared for other memory
      buffer: () => {
        isAside = slot === undefined
        return slot?.subarray(filled, Math.min(filled + READ_BYTES, pieceBytes)) ?? aside.subarray(0, pieceBytes)
      },
      callback: (count) => {
        if (isAside) aside.copy(slot!, filled, 0, count)
        filled += count
        received += count
        if (filled < pieceBytes && received < sizeBytes) return true
        const position = received - filled
        slots.set(position, slot!)
        threads[(position / pieceBytes) % THREADS]!.postMessage({ buffer: slot!.buffer, length: filled, fd, position })
        filled = 0
        slot = free.pop()
        return slot !== undefined
      }
    }
  })
}

await obey(({ torrent, save, seed, peers }) => {
  const layout = new TorrentLayout(parseTorrent(readFileSync(torrent)).info)
  const largest = layout.files.reduce((a, b) => (a.lengthBytes > b.lengthBytes ? a : b))
  const file = path.join(save, layout.name, largest.path)
  if (seed === true) {
    served = file
    tell({ event: 'added' })
  } else fetch(peers![0]![1], file, largest.lengthBytes, layout.pieceLengthBytes)
})
