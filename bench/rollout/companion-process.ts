// The other roles of a rollout, run as a separate process in a namespace: `tracker`, `bucket FOLDER`, or
// `poisoner TORRENT FOLDER TRACKER`, a seed that serves corrupt data. Prints a JSON line when ready; exits when stdin closes.
import { open, readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join, normalize } from 'node:path'
import { createInterface } from 'node:readline'
import { parseTorrent } from '@svc/metainfo'
import { createFileStorage, createSwarm } from '@svc/swarm'
import { startTracker } from '@svc/testkit/tracker'

const say = (message: object): void => void process.stdout.write(`${JSON.stringify(message)}\n`)
const [role, ...args] = process.argv.slice(2)

/** A static file server with ranges, like a bucket. Any line on stdin makes it report the total of body bytes sent. */
async function bucket(folder: string): Promise<() => Promise<void>> {
  let bytes = 0
  const server = createServer(async (request, response) => {
    const path = join(folder, normalize(decodeURIComponent(new URL(request.url!, 'http://bucket').pathname)))
    const size = await stat(path).then(
      (found) => (found.isFile() ? found.size : undefined),
      () => undefined
    )
    if (size === undefined) return void response.writeHead(404).end()
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? []
    const start = from === undefined ? 0 : Number(from)
    const end = to === undefined ? size : Number(to) + 1
    const headers = { 'content-length': end - start, 'accept-ranges': 'bytes' }
    if (from === undefined) response.writeHead(200, headers)
    else response.writeHead(206, { ...headers, 'content-range': `bytes ${start}-${end - 1}/${size}` })
    const file = await open(path)
    const stream = file.createReadStream({ start, end: end - 1 })
    stream.on('data', (chunk) => {
      bytes += chunk.length
    })
    response.on('close', () => stream.destroy())
    stream.on('error', () => response.destroy())
    stream.pipe(response)
  })
  await new Promise<void>((resolve) => server.listen(8080, '0.0.0.0', resolve))
  createInterface({ input: process.stdin }).on('line', () => say({ bytes }))
  return async () => void server.close()
}

async function poisoner(torrentFile: string, folder: string, tracker: string): Promise<() => Promise<void>> {
  const { info, pieceLayers } = parseTorrent(await readFile(torrentFile))
  const honest = createFileStorage(folder, { trusted: true })
  const storage = new Proxy(honest, {
    get(target, name) {
      if (name !== 'read') {
        const value = Reflect.get(target, name) as unknown
        return typeof value === 'function' ? value.bind(target) : value
      }
      return async (file: number, offset: number, into: Uint8Array) => {
        const count = await target.read(file, offset, into)
        for (let at = 0; at < count; at += 4096) into[at]! ^= 1
        return count
      }
    }
  })
  const swarm = await createSwarm({ peerAddress: { host: '0.0.0.0', port: 6881 } })
  swarm.add({ info, pieceLayers: pieceLayers.layers, storage, seedOnly: true, trackers: [tracker] })
  return () => swarm.close()
}

async function tracker(): Promise<() => Promise<void>> {
  const server = await startTracker({ host: '0.0.0.0', port: 6969, intervalMs: 60_000 })
  return () => server.close()
}

const close =
  role === 'tracker'
    ? await tracker()
    : role === 'bucket'
      ? await bucket(args[0]!)
      : await poisoner(args[0]!, args[1]!, args[2]!)
say({ ready: true })
process.stdin.resume()
process.stdin.once('end', () => void close().then(() => process.exit()))
