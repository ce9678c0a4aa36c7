import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

export interface LyingPeer {
  readonly address: string
  /** Blocks sent so far, all of them wrong. */
  readonly blocks: () => number
  close(): Promise<void>
}

/**
 * A BitTorrent v1 peer on 127.0.0.1 that has the right metadata (BEP 9) and claims every piece, but sends zeros for
 * every block.
 */
export async function startLyingPeer(infohash: string, info: Uint8Array, pieceCount: number): Promise<LyingPeer> {
  const sockets = new Set<Socket>()
  let blocks = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    let buffer = Buffer.alloc(0)
    let shaken = false
    let metadataId = 0
    socket.on('data', (chunk) => {
      buffer = Buffer.concat([buffer, chunk])
      if (!shaken) {
        if (buffer.length < 68) return
        buffer = buffer.subarray(68)
        shaken = true
        const reserved = Buffer.from([0, 0, 0, 0, 0, 0x10, 0, 0])
        socket.write(
          Buffer.concat([
            Buffer.from('\x13BitTorrent protocol'),
            reserved,
            Buffer.from(infohash, 'hex'),
            Buffer.from('-LIAR00-000000000000')
          ])
        )
        send(socket, 20, Buffer.from(`\x00d1:md11:ut_metadatai1ee13:metadata_sizei${info.length}ee`, 'latin1'))
        const bitfield = Buffer.alloc(Math.ceil(pieceCount / 8))
        for (let i = 0; i < pieceCount; i++) bitfield[i >> 3]! |= 0x80 >> (i & 7)
        send(socket, 5, bitfield)
        send(socket, 1, Buffer.alloc(0))
      }
      while (buffer.length >= 4 && buffer.length >= 4 + buffer.readUInt32BE(0)) {
        const message = buffer.subarray(4, 4 + buffer.readUInt32BE(0))
        buffer = buffer.subarray(4 + message.length)
        if (message[0] === 6) {
          blocks++
          send(socket, 7, Buffer.concat([message.subarray(1, 9), Buffer.alloc(message.readUInt32BE(9))]))
        } else if (message[0] === 20 && message[1] === 0) {
          metadataId = Number(/ut_metadatai(\d+)e/.exec(message.toString('latin1'))?.[1] ?? 0)
        } else if (message[0] === 20 && message[1] === 1) {
          const piece = Number(/5:piecei(\d+)e/.exec(message.toString('latin1'))?.[1] ?? 0)
          const header = `d8:msg_typei1e5:piecei${piece}e10:total_sizei${info.length}ee`
          send(
            socket,
            20,
            Buffer.concat([
              Buffer.from([metadataId]),
              Buffer.from(header),
              info.subarray(piece << 14, (piece + 1) << 14)
            ])
          )
        }
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    blocks: () => blocks,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      })
  }
}

function send(socket: Socket, id: number, payload: Uint8Array): void {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(payload.length + 1)
  head[4] = id
  if (socket.writable) socket.write(Buffer.concat([head, payload]))
}
