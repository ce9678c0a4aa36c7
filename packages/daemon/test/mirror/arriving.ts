// An OCI mirror whose source holds its files back, and clients of the mirror.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Job, ShareResult } from '@svc/client/protocol'
import { onTestFinished } from 'vitest'
import { kindOf } from '../swarm/fake-webseed.ts'
import { eventually, Node, pinned } from '../swarm/nodes.ts'

/** A dead tracker: a fetch without a source continues while a tracker may still name one. */
const TRACKER = 'http://127.0.0.1:1/announce'

export interface Gate {
  readonly url: string
  /** Paths of requested files. */
  readonly asked: readonly string[]
  /** Lets files through that `may` allows by path and start of the range; by default all. */
  open(may?: (path: string, start: number) => boolean): void
}

/** A proxy of the seed's listener: documents pass; files get a 503 until they are let through. */
export async function gated({ webseeds }: ShareResult): Promise<Gate> {
  const seed = new URL(webseeds[0]!)
  const asked: string[] = []
  let may = (_path: string, _start: number): boolean => false
  const server = createServer((incoming, response) => {
    const path = decodeURIComponent(incoming.url!)
    if (kindOf(path) === 'file') {
      asked.push(path)
      const [, start] = /^bytes=(\d+)/.exec(incoming.headers.range ?? '') ?? []
      if (!may(path, Number(start))) return void response.writeHead(503, { 'retry-after': '1' }).end()
    }
    const headers = { ...incoming.headers, host: seed.host }
    const onward = request({ host: seed.hostname, port: seed.port, path: incoming.url, headers }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(response)
    })
    onward.on('error', () => response.destroy())
    onward.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    asked,
    open: (which = () => true) => {
      may = which
    }
  }
}

export const addressOf = (node: Node): string =>
  JSON.parse(readFileSync(join(node.folder, 'runtime.json'), 'utf8')).ociMirrorAddress

export interface Got {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  readonly isCut: boolean
}

interface Asked {
  readonly method?: string
  readonly range?: string
  readonly onHead?: (status: number) => void
}

/** Retries when it is told to, as clients of registries do. */
export async function ask(node: Node, path: string, asked: Asked = {}): Promise<Got> {
  for (;;) {
    const got = await askOnce(node, path, asked)
    if (got.status !== 429) return got
  }
}

function askOnce(node: Node, path: string, { method = 'GET', range, onHead }: Asked): Promise<Got> {
  const [host, port] = addressOf(node).split(':')
  return new Promise((resolve, reject) => {
    const headers = range === undefined ? {} : { range }
    request({ host, port, path: `/v2/acme/model/${path}`, method, headers, agent: false }, (answer) => {
      onHead?.(answer.statusCode!)
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      const done = (isCut: boolean): void =>
        resolve({ status: answer.statusCode!, headers: answer.headers, body: Buffer.concat(chunks), isCut })
      answer.once('end', () => done(false)).once('error', () => done(true))
    })
      .on('error', reject)
      .end()
  })
}

export const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

/** A node with a mirror that waits long for sources. */
export const mirroring = (mirror: object, folder?: string, fillTimeoutSeconds = 600): Promise<Node> =>
  Node.start({
    mirror: { oci_addr: '127.0.0.1:0', ...mirror },
    swarm: { fill_timeout: fillTimeoutSeconds },
    ...(folder !== undefined && { folder })
  })

/** Starts an import from the gate, and waits until it requests a file. @returns the job */
export async function beginImport(node: Node, gate: Gate, share: ShareResult): Promise<Job> {
  const hints = { webseeds: [gate.url], peers: [], trackers: [TRACKER] }
  const before = gate.asked.length
  const job = await node.client.importBt(pinned(share, { ...hints, as: 'acme/model' }))
  await eventually(() => (gate.asked.length > before ? true : undefined))
  return job
}

/** A node that has started an import from the gate, and has no byte of any file. */
export async function importing(gate: Gate, share: ShareResult, mirror: object): Promise<Node> {
  const node = await mirroring(mirror)
  await beginImport(node, gate, share)
  return node
}
