// What a leech of the BitTorrent protocol cannot leave out, and nothing else: told by the JSON lines of `../swarm/engine-peer.ts`, it shakes hands,
// is interested, asks for all blocks in order, 16 MiB ahead, and refills that by 1 MiB. Blocks are copied out of the socket's buffer, hashed in two threads, written and
// synced. Where an answer belongs is what its head says: no limits, no checks, no choice of pieces, no second peer, no errors.
import { closeSync, constants, fdatasyncSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { parseTorrent, TorrentLayout } from '@svc/metainfo'
import { obey, tell } from './peer-commands.ts'

// The heap of the engine's process beside this one
setFlagsFromString('--max-semi-space-size=1')
setFlagsFromString('--semi-space-growth-factor=1')

const WORKER = new URL('./piece-worker.ts', import.meta.url)
const BLOCK_BYTES = 16_384
const HANDSHAKE_BYTES = 68
const HEAD_BYTES = 13
const REQUEST_BYTES = 17
const READ_BYTES = 256 << 10
const THREADS = 2
/** Pieces that are being received, hashed or written; with so few left nothing is read, since one read may begin several. */
const SLOTS = 9
const FEW = 3
/** Requests that are not answered, and how many leave together. */
const AHEAD = 1_024
const TOGETHER = 64
const [UNCHOKE, INTERESTED, REQUEST, PIECE] = [1, 2, 6, 7]

function fetch(port: number, folder: string, layout: TorrentLayout, infohash: Uint8Array): void {
  const fds = layout.files.map((file) => {
    const target = path.join(folder, layout.name, file.path)
    mkdirSync(path.dirname(target), { recursive: true })
    return openSync(target, constants.O_RDWR | constants.O_CREAT | constants.O_TRUNC)
  })
  const free: Buffer[] = Array.from({ length: SLOTS }, () =>
    Buffer.from(new SharedArrayBuffer(layout.pieceLengthBytes))
  )
  let left = layout.pieceCount
  const written = (slot: Buffer): void => {
    free.push(slot)
    if (--left === 0) {
      for (const fd of fds) {
        fdatasyncSync(fd)
        closeSync(fd)
      }
      return tell({ event: 'finished' })
    }
    if (paused && free.length >= FEW) {
      paused = false
      socket.resume()
    }
  }
  const threads = Array.from({ length: THREADS }, () => {
    const thread = new Worker(WORKER, { trackUnmanagedFds: false, execArgv: [] })
    const slots: Buffer[] = []
    thread.on('message', () => written(slots.shift()!))
    return { thread, slots }
  })

  // what is asked for next: all blocks in order. Answers come in any, since a seed reads with several threads.
  let [askPiece, askBegin, asked, answered] = [0, 0, 0, 0]
  const ask = (count: number): void => {
    const requests = Buffer.allocUnsafe(count * REQUEST_BYTES)
    let bytes = 0
    for (; bytes < requests.length && askPiece < layout.pieceCount; bytes += REQUEST_BYTES) {
      const { lengthBytes } = layout.span(askPiece)
      const length = Math.min(BLOCK_BYTES, lengthBytes - askBegin)
      requests.writeUInt32BE(REQUEST_BYTES - 4, bytes)
      requests[bytes + 4] = REQUEST
      requests.writeUInt32BE(askPiece, bytes + 5)
      requests.writeUInt32BE(askBegin, bytes + 9)
      requests.writeUInt32BE(length, bytes + 13)
      askBegin += length
      asked += 1
      if (askBegin < lengthBytes) continue
      askPiece += 1
      askBegin = 0
    }
    if (bytes > 0) socket.write(requests.subarray(0, bytes))
  }
  const begun = new Map<number, { readonly slot: Buffer; left: number }>()
  let [piece, at, body, paused] = [0, 0, 0, false]
  let slot: Buffer = Buffer.alloc(0)
  const blockBegins = (length: number): void => {
    piece = head.readUInt32BE(5)
    at = head.readUInt32BE(9)
    body = length
    if (!begun.has(piece)) begun.set(piece, { slot: free.pop()!, left: layout.span(piece).lengthBytes })
    slot = begun.get(piece)!.slot
  }
  const block = (bytes: Buffer, from: number, end: number): void => {
    bytes.copy(slot, at, from, end)
    at += end - from
    body -= end - from
    const state = begun.get(piece)!
    state.left -= end - from
    if (body > 0) return
    answered += 1
    if (asked - answered <= AHEAD - TOGETHER) ask(TOGETHER)
    if (state.left > 0) return
    begun.delete(piece)
    const { file, offset, lengthBytes } = layout.span(piece)
    const { thread, slots } = threads[piece % THREADS]!
    slots.push(slot)
    thread.postMessage({ buffer: slot.buffer, length: lengthBytes, fd: fds[file.index], position: offset })
  }

  const head = Buffer.alloc(HANDSHAKE_BYTES)
  let [held, greeted] = [0, false]
  /** Takes the head of a message, or all of one that is no block. @returns bytes of it that are missing */
  const wanted = (): number => {
    if (!greeted) return HANDSHAKE_BYTES
    if (held < 5) return held >= 4 && head.readUInt32BE(0) === 0 ? 4 : 5
    return head[4] === PIECE ? HEAD_BYTES : 5
  }
  let skip = 0
  const take = (bytes: Buffer): void => {
    let at = 0
    while (at < bytes.length) {
      if (body > 0 || skip > 0) {
        const end = Math.min(bytes.length, at + (body > 0 ? body : skip))
        if (body > 0) block(bytes, at, end)
        else skip -= end - at
        at = end
        continue
      }
      const end = Math.min(bytes.length, at + wanted() - held)
      bytes.copy(head, held, at, end)
      held += end - at
      at = end
      if (held < wanted()) continue
      held = 0
      if (!greeted) {
        greeted = true
        socket.write(Buffer.from([0, 0, 0, 1, INTERESTED]))
        continue
      }
      const length = head.readUInt32BE(0)
      if (length === 0) continue
      if (head[4] === PIECE) blockBegins(length - 9)
      else skip = length - 1
      // libtorrent says so twice
      if (head[4] === UNCHOKE && asked === 0) ask(AHEAD)
    }
  }
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES)
  const socket = connect({
    host: '127.0.0.1',
    port,
    noDelay: true,
    onread: {
      buffer,
      callback: (count) => {
        take(buffer.subarray(0, count))
        paused = free.length < FEW
        return !paused
      }
    }
  })
  const shake = Buffer.alloc(HANDSHAKE_BYTES)
  shake.write('\x13BitTorrent protocol', 'latin1')
  // the fast extension, and version 2
  shake[27] = 0x14
  shake.set(infohash, 28)
  shake.write('-BA0000-bare00leech0', 48, 'latin1')
  socket.write(shake)
}

tell({ event: 'ready', port: 0 })

await obey(({ torrent, save, peers }) => {
  const { info } = parseTorrent(readFileSync(torrent))
  fetch(peers![0]![1], save, new TorrentLayout(info), info.infohash.subarray(0, 20))
})
