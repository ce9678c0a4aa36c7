import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One line of a listing, or a raw one that is sent unchanged. */
export interface CatalogLine {
  readonly repo: string
  readonly sizeLabel?: string
  readonly seeds?: number
  readonly magnet: string
}

export interface FakeCatalog {
  readonly endpoint: string
  readonly requests: readonly string[]
  /** Replaces the listing. A string is sent verbatim as one line. */
  list(lines: readonly (CatalogLine | string)[]): void
  /** The content of `GET /<owner>/<repo>`: `<sha256>  <path>` lines within a page, like the provider's. */
  record(repo: string, files: ReadonlyMap<string, string>): void
  /** Responds to every request with this status from now on; `undefined` ends that. */
  fail(status: number | undefined): void
  /** Responds to every request with this redirect from now on. */
  redirect(status: number, location: string): void
  /** Sends this body for a path instead of the listing's. */
  override(path: string, body: string | Uint8Array): void
  close(): Promise<void>
}

/** A provider of community torrents on 127.0.0.1 with the public provider's text format (spec cat.2, cat.8). */
export async function startFakeCatalog(): Promise<FakeCatalog> {
  let lines: readonly (CatalogLine | string)[] = []
  let status: number | undefined
  let location: string | undefined
  const records = new Map<string, string>()
  const overrides = new Map<string, string | Uint8Array>()
  const requests: string[] = []

  const server = createServer((request, response) => {
    const path = request.url ?? '/'
    requests.push(path)
    const answer = (code: number, body: string | Uint8Array, type = 'text/plain; charset=utf-8') => {
      response.writeHead(code, { 'content-type': type, ...(location !== undefined && { location }) })
      response.end(body)
    }
    if (status !== undefined) return answer(status, 'no')
    const override = overrides.get(path)
    if (override !== undefined) return answer(200, override)
    if (path.startsWith('/s/')) {
      const terms = decodeURIComponent(path.slice(3)).toLowerCase().split(/\s+/).filter(Boolean)
      const hits = lines.filter(
        (line) => typeof line === 'string' || terms.every((term) => line.repo.toLowerCase().includes(term))
      )
      return answer(200, `${hits.map(formatLine).join('\n')}\n`)
    }
    const record = records.get(decodeURIComponent(path.slice(1)))
    if (record === undefined) return answer(404, 'not here')
    answer(200, `<html><script type="application/json">${record}</script></html>`, 'text/html')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    endpoint: `http://127.0.0.1:${port}`,
    requests,
    list: (next) => {
      lines = next
    },
    record: (repo, files) => {
      const manifest = [...files].map(([path, sha256]) => `${sha256}  ${path}\n`).join('')
      records.set(repo, JSON.stringify({ repo, manifest, comments: 0 }))
    },
    fail: (next) => {
      status = next
    },
    redirect: (next, to) => {
      status = next
      location = to
    },
    override: (path, body) => {
      overrides.set(path, body)
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

function formatLine(line: CatalogLine | string): string {
  if (typeof line === 'string') return line
  return [line.repo, line.sizeLabel ?? '1.0 GiB', `${line.seeds ?? 1} seeds`, line.magnet].join('  ')
}
