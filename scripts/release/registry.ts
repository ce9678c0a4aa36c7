import { createServer } from 'node:http'

/** A package registry on loopback, in memory: what `npm publish` and `npm install` need of one. */
export interface LocalRegistry extends AsyncDisposable {
  readonly url: string
  /** `name@version` of what was published, in order. */
  readonly published: readonly string[]
  /** What was published, by its path in the registry. */
  readonly tarballs: ReadonlyMap<string, Buffer>
}

interface Packument {
  readonly name: string
  'dist-tags': Record<string, string>
  versions: Record<string, { dist: { tarball: string } }>
  _attachments?: Record<string, { data: string }>
}

const MAX_BODY_BYTES = 64 << 20

/** Starts it on a free port. It forgets everything when it is closed. */
export async function startLocalRegistry(): Promise<LocalRegistry> {
  const packuments = new Map<string, Packument>()
  const tarballs = new Map<string, Buffer>()
  const published: string[] = []

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    let sizeBytes = 0
    request.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length
      if (sizeBytes > MAX_BODY_BYTES) request.destroy()
      else chunks.push(chunk)
    })
    request.on('end', () => {
      const path = decodeURIComponent((request.url ?? '/').slice(1).split('?')[0] ?? '')
      const answer = (status: number, body: Buffer | object): void => {
        const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body))
        response.writeHead(status, { 'content-length': bytes.length }).end(bytes)
      }
      if (request.method === 'PUT') return answer(201, publish(path, Buffer.concat(chunks)))
      const found = tarballs.get(path) ?? packuments.get(path)
      return found === undefined ? answer(404, { error: 'not found' }) : answer(200, found)
    })
  })

  function publish(path: string, body: Buffer): object {
    const { _attachments = {}, ...packument } = JSON.parse(body.toString()) as Packument
    for (const [file, { data }] of Object.entries(_attachments))
      tarballs.set(`${path}/-/${file}`, Buffer.from(data, 'base64'))
    const known = packuments.get(path)
    for (const [version, manifest] of Object.entries(packument.versions)) {
      manifest.dist.tarball = `${url}${path}/-/${path}-${version}.tgz`
      published.push(`${path}@${version}`)
    }
    packuments.set(path, {
      ...packument,
      versions: { ...known?.versions, ...packument.versions },
      'dist-tags': { ...known?.['dist-tags'], ...packument['dist-tags'] }
    })
    return { ok: true }
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const url = `http://127.0.0.1:${port}/`
  return {
    url,
    published,
    tarballs,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
