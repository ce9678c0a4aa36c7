import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** An OCI registry in memory, whose repositories can be closed to strangers while it runs. */
export interface FakeRegistry {
  /** `127.0.0.1:port` */
  readonly address: string
  /** What a Docker configuration file says to log in here. */
  readonly dockerConfig: string
  /** Whether reading a repository requires the login; writing always does. */
  setClosed(repository: string, isClosed: boolean): void
  /** All that is in a repository. */
  contentOf(repository: string): readonly Buffer[]
  close(): Promise<void>
}

const LOGIN = 'owner:secret'

/** Starts a registry; where it is not closed, strangers may read it. */
export async function startFakeRegistry(): Promise<FakeRegistry> {
  const blobs = new Map<string, Buffer>()
  const manifests = new Map<string, { readonly type: string; readonly bytes: Buffer }>()
  const closed = new Set<string>()
  const uploads = new Map<string, Buffer[]>()
  const authorization = `Basic ${Buffer.from(LOGIN).toString('base64')}`

  const send = (response: ServerResponse, status: number, headers: Record<string, string> = {}, body?: Buffer): void =>
    void response.writeHead(status, { 'content-length': String(body?.length ?? 0), ...headers }).end(body)

  async function write(request: IncomingMessage, response: ServerResponse, name: string, rest: string): Promise<void> {
    const url = new URL(request.url!, 'http://registry')
    const bytes = await buffer(request)
    const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    if (rest.startsWith('manifests/')) {
      const manifest = { type: request.headers['content-type']!, bytes }
      for (const key of [rest.slice('manifests/'.length), digest]) manifests.set(`${name} ${key}`, manifest)
      return send(response, 201, { 'docker-content-digest': digest })
    }
    const id = rest.split('/').at(-1) || String(uploads.size + 1)
    const chunks = uploads.get(id) ?? []
    uploads.set(id, chunks)
    if (bytes.length > 0) chunks.push(bytes)
    const wanted = url.searchParams.get('digest')
    const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
    if (request.method !== 'PUT' || wanted === null) {
      const location = `/v2/${name}/blobs/uploads/${id}`
      return send(response, 202, { location, range: `0-${Math.max(0, length - 1)}` })
    }
    blobs.set(`${name} ${wanted}`, Buffer.concat(chunks))
    uploads.delete(id)
    send(response, 201, { 'docker-content-digest': wanted })
  }

  function read(request: IncomingMessage, response: ServerResponse, name: string, rest: string): void {
    const [what, key] = rest.split('/')
    const found =
      what === 'manifests'
        ? manifests.get(`${name} ${key}`)
        : { type: 'application/octet-stream', bytes: blobs.get(`${name} ${key}`) }
    if (found?.bytes === undefined) return send(response, 404)
    const digest = `sha256:${createHash('sha256').update(found.bytes).digest('hex')}`
    const headers = {
      'content-type': found.type,
      'docker-content-digest': digest,
      'content-length': String(found.bytes.length)
    }
    send(response, 200, headers, request.method === 'HEAD' ? undefined : found.bytes)
  }

  const server = createServer((request, response) => {
    const path = request.url!.split('?', 1)[0]!
    const [, name = '', rest = ''] = /^\/v2\/(.+?)\/((?:manifests|blobs)\/.*)$/.exec(path) ?? []
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if ((closed.has(name) || !isRead) && request.headers.authorization !== authorization) {
      request.resume()
      return send(response, 401, { 'www-authenticate': 'Basic realm="fake"' })
    }
    if (name === '') return send(response, path === '/v2/' ? 200 : 404)
    if (isRead) return read(request, response, name, rest)
    write(request, response, name, rest).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    address,
    dockerConfig: JSON.stringify({ auths: { [address]: { auth: Buffer.from(LOGIN).toString('base64') } } }),
    setClosed: (repository, isClosed) => void (isClosed ? closed.add(repository) : closed.delete(repository)),
    contentOf: (repository) => [
      ...[...blobs].flatMap(([key, bytes]) => (key.startsWith(`${repository} `) ? [bytes] : [])),
      ...[...manifests].flatMap(([key, { bytes }]) => (key.startsWith(`${repository} `) ? [bytes] : []))
    ],
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
