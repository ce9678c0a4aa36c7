// The least that can answer: `node:http` on a socket and on a port, with one fixed body, and with ranges of a file where one is
// given. Beside the daemon it shows what of a latency is the machine's, and under the same flood what is Node's.
import { openSync, readSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

const [socketPath, body, file] = process.argv.slice(2) as [string, string, string?]
const fd = file === undefined ? undefined : openSync(file, 'r')

const answer: RequestListener = (request, response) => {
  const { method, headers } = request
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
  if (method === 'POST') {
    // a list of paths: read, and split into its fields
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const fields = Buffer.concat(chunks).toString().split('&').length
      response.writeHead(fields > 1_000 ? 400 : 200).end()
    })
  } else if (fd !== undefined && first !== undefined) {
    const bytes = Buffer.allocUnsafe(Number(last) - Number(first) + 1)
    readSync(fd, bytes, 0, bytes.length, Number(first))
    response.writeHead(206, { 'Content-Length': bytes.length }).end(bytes)
  } else {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }).end(body)
  }
}
const port = createServer(answer).listen(0, '127.0.0.1', () =>
  createServer(answer).listen(socketPath, () => process.stdout.write(`${(port.address() as AddressInfo).port}\n`))
)
