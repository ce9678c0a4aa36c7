import { connect, type Socket } from 'node:net'

/** The largest block size that every client accepts. */
const BLOCK_BYTES = 16_384
const IN_FLIGHT = 256
const MESSAGE = { unchoke: 1, interested: 2, request: 6, piece: 7, haveNone: 15 } as const
const HANDSHAKE_BYTES = 68

/** A peer that requests `count` blocks from `firstPiece` on and discards them, so that the seed is the bottleneck. Resolves after the last one. */
export function discard(options: {
  readonly port: number
  readonly infohash: Uint8Array
  readonly pieceBytes: number
  readonly firstPiece: number
  readonly count: number
}): Promise<void> {
  const { port, infohash, pieceBytes, firstPiece, count } = options
  const perPiece = pieceBytes / BLOCK_BYTES
  let asked = 0
  let answered = 0
  let unchoked = false
  return new Promise((resolve, reject) => {
    const frames = new Frames((id) => {
      if (id === MESSAGE.unchoke) unchoked = true
      if (id === MESSAGE.piece) answered += 1
    })
    const socket: Socket = connect({
      host: '127.0.0.1',
      port,
      noDelay: true,
      onread: {
        buffer: new Uint8Array(262_144),
        callback: (length, buffer) => {
          frames.push(buffer, length)
          if (answered === count) {
            socket.destroy()
            resolve()
          } else if (unchoked) ask()
          return true
        }
      }
    })
    const ask = (): void => {
      const room = Math.min(count - asked, IN_FLIGHT - (asked - answered))
      if (room < IN_FLIGHT / 4 && asked + room < count) return
      const out = Buffer.alloc(17 * room)
      for (let at = 0; at < room; at += 1, asked += 1) {
        out.writeUInt32BE(13, at * 17)
        out[at * 17 + 4] = MESSAGE.request
        out.writeUInt32BE(firstPiece + Math.floor(asked / perPiece), at * 17 + 5)
        out.writeUInt32BE((asked % perPiece) * BLOCK_BYTES, at * 17 + 9)
        out.writeUInt32BE(BLOCK_BYTES, at * 17 + 13)
      }
      socket.write(out)
    }
    socket.once('connect', () => {
      const shake = Buffer.alloc(HANDSHAKE_BYTES)
      shake[0] = 19
      shake.write('BitTorrent protocol', 1, 'latin1')
      // fast extension, v2
      shake[27] = 0x04 | 0x10
      shake.set(infohash.subarray(0, 20), 28)
      shake.write(`-XX0000-${String(Math.random()).slice(2, 14).padEnd(12, '0')}`, 48, 'latin1')
      socket.write(Buffer.concat([shake, Buffer.from([0, 0, 0, 1, MESSAGE.haveNone, 0, 0, 0, 1, MESSAGE.interested])]))
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`the seed closed the connection after ${answered} of ${count} blocks`)))
  })
}

/** Counts messages by their length prefix, after the handshake, without parsing their bodies. */
class Frames {
  readonly #onMessage: (id: number) => void
  #skip = HANDSHAKE_BYTES
  #held: number[] = []
  #id = -1

  constructor(onMessage: (id: number) => void) {
    this.#onMessage = onMessage
  }

  push(bytes: Uint8Array, length: number): void {
    for (let at = 0; at < length; ) {
      const step = Math.min(this.#skip, length - at)
      this.#skip -= step
      at += step
      if (this.#skip > 0) return
      if (this.#id >= 0) {
        this.#onMessage(this.#id)
        this.#id = -1
      }
      while (at < length && this.#held.length < 5) {
        this.#held.push(bytes[at]!)
        at += 1
        // a keep-alive is empty: it has no message id
        if (this.#held.length === 4 && this.#held.every((byte) => byte === 0)) this.#held = []
      }
      if (this.#held.length < 5) return
      const [a, b, c, d, id] = this.#held as [number, number, number, number, number]
      this.#skip = ((a << 24) | (b << 16) | (c << 8) | d) - 1
      this.#id = id
      this.#held = []
      if (this.#skip === 0) {
        this.#onMessage(id)
        this.#id = -1
      }
    }
  }
}
