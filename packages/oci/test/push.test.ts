// Uploads to registries with peculiarities: a real HTTP server on loopback.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { digestOf } from '../src/document.ts'
import { type PackedImage, packArtifact } from '../src/pack.ts'
import { pushImage } from '../src/push.ts'
import { Repository } from '../src/registry.ts'

const QUICK = { firstDelayMs: 1 }
const fails = (code: string) => expect.objectContaining({ name: 'OciError', code })

interface Habits {
  /** Answers instead of the registry where it returns true. */
  readonly before?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** More headers of the answer to a new upload. */
  readonly started?: Readonly<Record<string, string>>
  readonly query?: string
}

/** Accepts chunks only at the end of an upload, and reports `0-0` for an empty one, as the reference implementation does. */
async function registryOf({ before, started, query = '' }: Habits = {}) {
  let upload = Buffer.alloc(0)
  const seen = { chunks: [] as string[], ends: [] as string[], manifests: 0, uploads: 0 }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    if (before?.(request, response) === true) return
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      const { method, url = '', headers } = request
      const location = `/v2/team/model/blobs/uploads/1${query}`
      const range = `0-${Math.max(0, upload.length - 1)}`
      if (method === 'HEAD') return response.writeHead(404).end()
      if (method === 'GET') return response.writeHead(204, { location, range }).end()
      if (method === 'POST') {
        upload = Buffer.alloc(0)
        seen.uploads++
        return response.writeHead(202, { location, ...started }).end()
      }
      if (method === 'PATCH') {
        seen.chunks.push(headers['content-range'] ?? '')
        if (!headers['content-range']?.startsWith(`${upload.length}-`)) return response.writeHead(416).end()
        upload = Buffer.concat([upload, body])
        return response.writeHead(202, { location }).end()
      }
      if (url.includes('/manifests/')) {
        seen.manifests++
        return response.writeHead(201).end()
      }
      seen.ends.push(url)
      const digest = new URL(url, 'http://x').searchParams.get('digest')
      response.writeHead(digestOf(upload) === digest ? 201 : 400).end()
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const registry = `127.0.0.1:${(server.address() as { port: number }).port}`
  const repository = new Repository({ registry, repository: 'team/model' }, { credentials: async () => undefined })
  onTestFinished(async () => {
    await repository.close()
    server.close().closeAllConnections()
  })
  return { repository, seen }
}

/** @param stored the bytes on disk, if not those that were hashed */
function pack(bytes: Buffer, stored = bytes): PackedImage {
  const folder = mkdtempSync(join(tmpdir(), 'svc-oci-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'a.gguf')
  writeFileSync(path, stored)
  const digest = digestOf(bytes)
  const file = { name: 'a.gguf', kind: 'weights.gguf', sizeBytes: bytes.length, digest, path }
  return packArtifact({ files: [file], annotations: {}, manifestDigest: digest })
}

describe('pushImage', () => {
  const image = () => pack(Buffer.alloc(1_000, 7))

  it('restarts at the first byte if nothing of a chunk arrived', async () => {
    let breaks = 1
    const { repository, seen } = await registryOf({
      before: (request) => request.method === 'PATCH' && breaks-- > 0 && request.socket.destroy() !== undefined
    })
    await pushImage(repository, 'q', image(), QUICK)
    expect(seen.chunks[0]).toBe('0-999')
  })

  it('does not send damaged bytes again and again', async () => {
    const { repository, seen } = await registryOf()
    const damaged = pack(Buffer.alloc(1_000, 7), Buffer.alloc(1_000, 8))
    await expect(pushImage(repository, 'q', damaged, QUICK)).rejects.toEqual(fails('E_DIGEST_MISMATCH'))
    expect(seen).toMatchObject({ uploads: 1, manifests: 0 })
  })

  it('sends chunks as large as the registry wants them', async () => {
    const sizeBytes = (64 << 20) + 1_000
    const started = { 'oci-chunk-min-length': `${65 << 20}` }
    const { repository, seen } = await registryOf({ started })
    await pushImage(repository, 'q', pack(Buffer.alloc(sizeBytes)), QUICK)
    expect(seen.chunks[0]).toBe(`0-${sizeBytes - 1}`)
  })

  it('keeps the query of an upload as it is', async () => {
    const { repository, seen } = await registryOf({ query: '?_state=a/b~c%3D&bare' })
    const pushed = image()
    await pushImage(repository, 'q', pushed, QUICK)
    expect(seen.ends[0]).toBe(
      `/v2/team/model/blobs/uploads/1?_state=a/b~c%3D&bare&digest=${encodeURIComponent(pushed.layers[0]!.descriptor.digest)}`
    )
  })

  it('retries the manifest when the registry fails briefly', async () => {
    let breaks = 1
    const { repository, seen } = await registryOf({
      before: ({ url }, response) => {
        const fail = url?.includes('/manifests/') === true && breaks-- > 0
        if (fail) response.writeHead(503).end()
        return fail
      }
    })
    await pushImage(repository, 'q', image(), QUICK)
    expect(seen.manifests).toBe(1)
  })

  it('uploads if a requested mount is refused', async () => {
    const { repository, seen } = await registryOf()
    const pushed = await pushImage(repository, 'q', image(), { ...QUICK, mountFrom: 'other/model' })
    expect(pushed.presentBytes).toBe(0)
    expect(seen.ends).toHaveLength(2)
  })
})
