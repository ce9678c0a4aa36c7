// What node can do at best where the daemon answers: a bare server on the Unix socket argv[2], without limits, checks or errors, for what the file
// argv[3] holds. argv[4]: `read` sends it in pieces read synchronously, `push` sends as many bytes without reading any, `answer` sends its bytes
// from memory, as a small answer of node:http.
import { openSync, readFileSync, readSync, statSync } from 'node:fs'
import { createServer } from 'node:http'

const [socketPath, file, mode] = process.argv.slice(2) as [string, string, 'read' | 'push' | 'answer']
const PIECE_BYTES = 192 << 10
const { size } = statSync(file)
const fd = openSync(file, 'r')
const piece = Buffer.allocUnsafeSlow(PIECE_BYTES)
const small = mode === 'answer' ? readFileSync(file) : undefined

const server = createServer((_request, response) => {
  response.setHeader('Content-Type', 'application/json')
  response.setHeader('Content-Length', size)
  if (small !== undefined) return response.end(small)
  response.flushHeaders()
  const socket = response.socket!
  let sent = 0
  const next = (): void => {
    if (sent === size) return void response.end()
    const count = Math.min(PIECE_BYTES, size - sent)
    if (mode === 'read') readSync(fd, piece, 0, count, sent)
    sent += count
    socket.write(count === PIECE_BYTES ? piece : piece.subarray(0, count), next)
  }
  next()
})
process.on('disconnect', () => process.exit(0))
server.listen(socketPath, () => process.send!('listening'))
