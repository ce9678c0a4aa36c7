// Runs discarding peers in a separate process. argv[2] is a JSON object with `port`, `infohash` (hex), `pieceBytes`, `connections` and
// `blocks` (the total over all connections).
import { discard } from './discarder.ts'

const { port, infohash, pieceBytes, connections, blocks } = JSON.parse(process.argv[2]!) as {
  port: number
  infohash: string
  pieceBytes: number
  connections: number
  blocks: number
}
const perPiece = pieceBytes / 16_384
const begun = performance.now()
await Promise.all(
  Array.from({ length: connections }, (_, index) => {
    const count = Math.floor(blocks / connections)
    const firstPiece = Math.floor((index * count) / perPiece)
    return discard({ port, infohash: Buffer.from(infohash, 'hex'), pieceBytes, firstPiece, count })
  })
)
console.log((performance.now() - begun) / 1000)
