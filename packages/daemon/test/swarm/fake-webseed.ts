import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ShareResult } from '@svc/client/protocol'
import { onTestFinished } from 'vitest'

/** Answers a request itself (true), or leaves it to the honest server (false). */
export type Answer = (
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
  bytes: Buffer | undefined
) => boolean | void

export interface FakeWebseed {
  readonly url: string
  /** Paths asked for, decoded. */
  readonly requests: readonly string[]
  /** Bytes of files sent, documents not counted. */
  readonly fileBytes: number
}

/** `manifest`, `layers` and `torrent` are the documents of a share, `listing` that of a publication, `file` everything else. */
export function kindOf(path: string): 'manifest' | 'layers' | 'torrent' | 'listing' | 'file' {
  if (path === '/index.json') return 'listing'
  if (path.startsWith('/bt/piece-layers/')) return 'layers'
  if (path.startsWith('/bt/')) return 'torrent'
  return /^\/[^/]+\/manifest\//.test(path) ? 'manifest' : 'file'
}

/** What a node's listener serves of an artifact, by decoded path. */
export async function contentOf(share: ShareResult): Promise<Map<string, Buffer>> {
  const base = share.webseeds[0]!.replace(/\/$/, '')
  const read = async (path: string): Promise<Buffer> => {
    const answer = await fetch(base + path.split('/').map(encodeURIComponent).join('/'))
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status}`)
    return Buffer.from(await answer.arrayBuffer())
  }
  const hex = share.infohash.slice('btmh:1220'.length)
  const manifestPath = `/${share.name}/manifest/sha256-${share.manifestDigest.slice('sha256:'.length)}`
  const manifest = await read(manifestPath)
  const content = new Map<string, Buffer>([[manifestPath, manifest]])
  content.set(`/bt/piece-layers/${hex}`, await read(`/bt/piece-layers/${hex}`))
  for (const { name } of (JSON.parse(manifest.toString()) as { files: { name: string }[] }).files) {
    content.set(`/${share.name}/${name}`, await read(`/${share.name}/${name}`))
  }
  return content
}

/**
 * An HTTP server of its own with an artifact's content: plain files with ranges, as any web server gives them. It answers nothing
 * before `opens`.
 */
export async function startWebseed(
  content: ReadonlyMap<string, Buffer>,
  answer: Answer = () => false,
  opens?: Promise<void>
): Promise<FakeWebseed> {
  const requests: string[] = []
  let fileBytes = 0
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(request.url!)
    requests.push(path)
    await opens
    const bytes = content.get(path)
    if (answer(path, request, response, bytes) === true) return
    if (bytes === undefined) return void response.writeHead(404).end()
    const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
    const [start, end] = range === null ? [0, bytes.length] : [Number(range[1]), Number(range[2]) + 1]
    const body = bytes.subarray(start, end)
    if (kindOf(path) === 'file') fileBytes += body.length
    response.writeHead(range === null ? 200 : 206, {
      'Content-Length': body.length,
      ...(range !== null && { 'Content-Range': `bytes ${start}-${end - 1}/${bytes.length}` })
    })
    response.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    requests,
    get fileBytes() {
      return fileBytes
    }
  }
}

/** Serves the documents, none of the files: identity from here, bytes from elsewhere. */
export const documentsOnly: Answer = (path, _request, response) => {
  if (kindOf(path) !== 'file') return false
  response.writeHead(404).end()
  return true
}
