// The least that can answer: `node:http` on a socket, with one fixed body. Beside the daemon it shows what of a latency is the machine's.
import { createServer } from 'node:http'

const [socketPath, body] = process.argv.slice(2) as [string, string]
createServer((_, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
}).listen(socketPath, () => process.stdout.write('listening\n'))
