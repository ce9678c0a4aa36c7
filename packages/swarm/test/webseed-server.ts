import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Fixture } from './torrent-fixture.ts'

export type WebseedHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  file: { readonly path: string; readonly bytes: Uint8Array; readonly start: number; readonly end: number }
) => void

export interface WebseedServer {
  /** Base URL for `url-list`. */
  readonly url: string
  readonly requests: readonly { readonly path: string; readonly start: number; readonly end: number }[]
  close(): Promise<void>
}

/** An honest answer: 206 with exactly the range. */
export const honest: WebseedHandler = (_request, response, { bytes, start, end }) => {
  response.writeHead(206, {
    'content-range': `bytes ${start}-${end - 1}/${bytes.length}`,
    'content-length': end - start
  })
  response.end(bytes.subarray(start, end))
}

/** A webseed (BEP 19) of a fixture on loopback; `handler` decides how it answers ranges of existing files. */
export async function startWebseed(fixture: Fixture, handler: WebseedHandler = honest): Promise<WebseedServer> {
  const requests: { path: string; start: number; end: number }[] = []
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url!.slice(1).replace(/\?.*$/, '')).replace(`${fixture.info.name}/`, '')
    const bytes = fixture.files.get(path)
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
    if (bytes === undefined || range === null) {
      response.writeHead(404).end()
      return
    }
    const file = { path, bytes, start: Number(range[1]), end: Number(range[2]) + 1 }
    requests.push({ path, start: file.start, end: file.end })
    handler(request, response, file)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}
