import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

const PAGES = 100
const ENTRIES = 1_000

/** One megabyte: names of weights that are as long as a path may be, and different on each page. */
function pageOf(page: number): Buffer {
  const entries = Array.from({ length: ENTRIES }, (_, i) => {
    const path = `${`${page}-${i}-`.padEnd(1_000, 'x')}-Q8_0.gguf`
    return { type: 'file', oid: 'a'.repeat(40), size: 1, path, lfs: { oid: 'b'.repeat(64), size: 1 } }
  })
  return Buffer.from(JSON.stringify(entries))
}

/** A hub on which each repository has 100,000 long names. */
export async function startLongHub(): Promise<{ readonly endpoint: string; readonly pages: () => number }> {
  const pages = Array.from({ length: PAGES }, (_, page) => pageOf(page))
  let given = 0
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://x')
    const [, repo = 'x/x', verb] = /^\/api\/models\/([^/]+\/[^/]+)\/?(\w*)/.exec(url.pathname) ?? []
    if (verb !== 'tree') {
      const info = { id: repo, sha: 'c'.repeat(40), private: false, gated: false }
      return void response.end(JSON.stringify(info))
    }
    given++
    const page = Number(url.searchParams.get('cursor') ?? 0)
    url.searchParams.set('cursor', String(page + 1))
    const link = `<http://${request.headers.host}${url.pathname}${url.search}>; rel="next"`
    response.writeHead(200, page + 1 < PAGES ? { link } : {})
    response.end(pages[page])
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, pages: () => given }
}
