// One small torrent, and what a stranger says to a swarm that has it.
import { createHash, randomBytes } from 'node:crypto'
import { encodeBencode } from '@svc/metainfo'

export const CONTENT = randomBytes(40_000)
export const INFO = encodeBencode({
  length: CONTENT.length,
  name: 'm.gguf',
  'piece length': 16_384,
  pieces: Buffer.concat(
    [0, 1, 2].map((piece) =>
      createHash('sha1')
        .update(CONTENT.subarray(piece * 16_384, (piece + 1) * 16_384))
        .digest()
    )
  )
})
export const INFOHASH = createHash('sha1').update(INFO).digest('hex')

/** Of a stranger with a name of its own. */
export const handshake = (flags = 0x10): Buffer =>
  Buffer.concat([
    Buffer.from('\x13BitTorrent protocol\0\0\0\0\0', 'latin1'),
    Buffer.from([flags, 0, 0x04]),
    Buffer.from(INFOHASH, 'hex'),
    Buffer.from(`-EV0000-${randomBytes(6).toString('hex')}`)
  ])

export function message(id: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(5)
  head.writeUInt32BE(payload.length + 1)
  head[4] = id
  return Buffer.concat([head, payload])
}
