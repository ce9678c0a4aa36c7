import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, normalize } from 'node:path'

/**
 * A bucket over a folder: below `open/` anybody reads, below `habit/` as well, where every answer says `Cache-Control:
 * private`; below `keyed/` only requests with a signature, and `front/` takes everybody's requests and sends them to the
 * same path below `keyed/`.
 */
export interface FakeBucket {
  /** `http://127.0.0.1:port/` */
  readonly url: string
  close(): Promise<void>
}

const SIGNED = 'AWS4-HMAC-SHA256 '

/** Serves `folder`, in which `open` and `keyed` are. Signatures are looked for, not verified. */
export async function startFakeBucket(folder: string): Promise<FakeBucket> {
  const server = createServer((request, response) => {
    const path = normalize(decodeURIComponent(request.url!.split('?', 1)[0]!))
    const refuse = (status: number): void => void response.writeHead(status, { 'content-length': '0' }).end()
    if (path.startsWith('/front/')) {
      const location = request.url!.replace('/front/', '/keyed/')
      return void response.writeHead(302, { location, 'content-length': '0' }).end()
    }
    const isHabit = path.startsWith('/habit/')
    if (!path.startsWith('/open/') && !isHabit && request.headers.authorization?.startsWith(SIGNED) !== true)
      return refuse(403)
    const file = join(folder, path)
    const size = statSync(file, { throwIfNoEntry: false })?.isFile() === true ? statSync(file).size : undefined
    if (size === undefined) return refuse(404)
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? []
    const start = Number(first ?? 0)
    if (first !== undefined && start >= size) return refuse(416)
    const end = last ? Math.min(size, Number(last) + 1) : size
    response.writeHead(first === undefined ? 200 : 206, {
      'accept-ranges': 'bytes',
      ...(isHabit && { 'cache-control': 'private, max-age=0' }),
      'content-length': String(end - start),
      ...(first !== undefined && { 'content-range': `bytes ${start}-${end - 1}/${size}` })
    })
    if (request.method === 'HEAD' || end === start) return void response.end()
    createReadStream(file, { start, end: end - 1 }).pipe(response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
