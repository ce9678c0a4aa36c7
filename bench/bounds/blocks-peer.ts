// What a seed of the BitTorrent protocol cannot leave out, and nothing else: told by the JSON lines of `../swarm/engine-peer.ts`, it shakes hands,
// says that it has all, unchokes, and answers each request in order. A run of blocks is read from the page cache into one buffer, between
// the heads of the blocks, and written to the socket as a whole. No limits, no choking, no checks of requests, no second peer's fair share, no errors.
import { openSync, readFileSync, readvSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { parseTorrent, TorrentLayout } from '@svc/metainfo'
import { obey, tell } from './peer-commands.ts'

// The heap of the engine's process beside this one
setFlagsFromString('--max-semi-space-size=1')
setFlagsFromString('--semi-space-growth-factor=1')

const BLOCK_BYTES = 16_384
const HEAD_BYTES = 13
const HANDSHAKE_BYTES = 68
const REQUEST_BYTES = 17
/** Of one write: it stays in the CPU's cache between the read and the write. */
const BLOCKS = 16
const [UNCHOKE, INTERESTED, REQUEST, PIECE, HAVE_ALL] = [1, 2, 6, 7, 14]

let layout: TorrentLayout
let infohash: Uint8Array
const fds: number[] = []

const server = createServer({ noDelay: true }, (socket) => {
  const memory = Buffer.allocUnsafeSlow(BLOCKS * (HEAD_BYTES + BLOCK_BYTES))
  const bodies = Array.from({ length: BLOCKS }, (_, at) => {
    const begin = at * (HEAD_BYTES + BLOCK_BYTES) + HEAD_BYTES
    return memory.subarray(begin, begin + BLOCK_BYTES)
  })
  /** Piece, begin and length of each request, one after the other. */
  const asked: number[] = []
  let [answered, writing] = [0, false]
  let held: Buffer = Buffer.alloc(0)
  let greeted = false

  const answer = (): void => {
    while (!writing && answered < asked.length) {
      const [piece, begin] = [asked[answered]!, asked[answered + 1]!]
      const { file, offset } = layout.span(piece)
      let [count, bytes] = [0, 0]
      for (let at = answered; at < asked.length && count < BLOCKS; at += 3, count += 1) {
        const length = asked[at + 2]!
        if (asked[at] !== piece || asked[at + 1] !== begin + bytes) break
        const head = count * (HEAD_BYTES + BLOCK_BYTES)
        memory.writeUInt32BE(9 + length, head)
        memory[head + 4] = PIECE
        memory.writeUInt32BE(piece, head + 5)
        memory.writeUInt32BE(begin + bytes, head + 9)
        bytes += length
        if (length === BLOCK_BYTES) continue
        count += 1
        break
      }
      answered += 3 * count
      readvSync(fds[file.index]!, count === BLOCKS ? bodies : bodies.slice(0, count), offset + begin)
      writing = true
      const length = count * HEAD_BYTES + bytes
      socket.write(length === memory.length ? memory : memory.subarray(0, length), () => {
        if (socket.writableLength === 0 && writing) written()
      })
      if (socket.writableLength === 0) writing = false
    }
    if (answered === asked.length) {
      asked.length = 0
      answered = 0
    }
  }
  const written = (): void => {
    writing = false
    answer()
  }

  socket.on('error', () => undefined)
  socket.on('data', (bytes: Buffer) => {
    let all = held.length === 0 ? bytes : Buffer.concat([held, bytes])
    if (!greeted) {
      if (all.length < HANDSHAKE_BYTES) {
        held = all
        return
      }
      greeted = true
      // the same name of protocol, with the bit of the fast extension; our peer id
      const shake = Buffer.from(all.subarray(0, HANDSHAKE_BYTES))
      shake.fill(0, 20, 28)
      shake[27] = 0x04
      shake.set(infohash, 28)
      shake.write('-BA0000-bare00seed00', 48, 'latin1')
      socket.write(Buffer.concat([shake, Buffer.from([0, 0, 0, 1, HAVE_ALL])]))
      all = all.subarray(HANDSHAKE_BYTES)
    }
    let at = 0
    while (all.length - at >= 4) {
      const length = all.readUInt32BE(at)
      if (all.length - at < 4 + length) break
      const id = length === 0 ? undefined : all[at + 4]
      if (id === INTERESTED) socket.write(Buffer.from([0, 0, 0, 1, UNCHOKE]))
      if (id === REQUEST && length === REQUEST_BYTES - 4)
        asked.push(all.readUInt32BE(at + 5), all.readUInt32BE(at + 9), all.readUInt32BE(at + 13))
      at += 4 + length
    }
    held = at === all.length ? Buffer.alloc(0) : Buffer.from(all.subarray(at))
    answer()
  })
})
server.listen(0, '127.0.0.1', () => tell({ event: 'ready', port: (server.address() as AddressInfo).port }))

await obey(({ torrent, save }) => {
  const { info } = parseTorrent(readFileSync(torrent))
  layout = new TorrentLayout(info)
  infohash = info.infohash.subarray(0, 20)
  for (const file of layout.files) fds[file.index] = openSync(path.join(save, layout.name, file.path), 'r')
  tell({ event: 'added' })
})
