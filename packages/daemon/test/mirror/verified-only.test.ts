// Sources send wrong bytes while clients pull through a mirror: no client sees any of them.
import { readFileSync, unlinkSync } from 'node:fs'
import { createServer, get, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Job } from '@svc/client/protocol'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test } from 'vitest'
import { BUILTIN_NETWORKS } from '../../src/app/networks.ts'
import { openSwarm } from '../../src/app/open-swarm.ts'
import { eventually, MIB, Node, pinned, weights } from '../swarm/nodes.ts'
import { addressOf, ask, digestOf } from './arriving.ts'

const WEIGHTS = 'model-q8_0.gguf'
const RIGHT = weights(4 * MIB + 9, 63)
const digest = digestOf(RIGHT)
const WRONG = Buffer.from(RIGHT)
WRONG[1_000]! ^= 1
const HALF = RIGHT.length >> 1

interface Liar {
  readonly url: string
  /** Lets the second half of the weights through. */
  goOn(): void
}

/** Serves wrong weights at every path with `x` or their digest, and stops halfway until it may continue. Proxies the rest to `behind`. */
async function liar(behind?: string): Promise<Liar> {
  const { promise: held, resolve: goOn } = Promise.withResolvers<void>()
  const server = createServer((asked, response) => {
    if (!asked.url!.endsWith('/x') && !asked.url!.endsWith(`/blobs/${digest}`)) {
      const onward = request(
        `${behind}${asked.url}`,
        { method: asked.method, headers: { accept: '*/*' } },
        (answer) => {
          response.writeHead(answer.statusCode!, answer.headers)
          answer.pipe(response)
        }
      )
      return void onward.on('error', () => response.destroy()).end()
    }
    const [, first = '0', last = `${RIGHT.length - 1}`] = /bytes=(\d+)-(\d*)/.exec(asked.headers.range ?? '') ?? []
    const [start, end] = [Number(first), last === '' ? RIGHT.length : Number(last) + 1]
    response.writeHead(asked.headers.range === undefined ? 200 : 206, {
      'content-length': end - start,
      ...(asked.headers.range && { 'content-range': `bytes ${start}-${end - 1}/${RIGHT.length}` })
    })
    if (asked.method === 'HEAD') return void response.end()
    response.write(WRONG.subarray(start, Math.min(end, Math.max(start, HALF))))
    void held.then(() => response.end(WRONG.subarray(Math.max(start, HALF), end)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, goOn: () => goOn() }
}

/** A hub that lists the right weights, with the liar as its CDN. */
async function lyingHub(): Promise<Liar & { readonly endpoint: string }> {
  const cdn = await liar()
  const hub = await startFakeHub({ tokens: [], cdnAddress: () => `${cdn.url}/x` })
  onTestFinished(() => hub.close())
  hub.commit({ id: 'Acme/Model', files: [{ path: WEIGHTS, content: RIGHT }] })
  return { ...cdn, endpoint: hub.endpoint }
}

const startNode = (mirror: object, endpoint: string): Promise<Node> =>
  Node.start({
    more: {
      fileConfig: {
        swarm: { dht: false, peer_addr: '127.0.0.1:0', fill_timeout: 600 },
        mirror: { on_demand: true, ...mirror },
        hub: { endpoint }
      },
      networks: { swarm: (context) => openSwarm(context), hub: BUILTIN_NETWORKS.hub! }
    }
  })

/** Waits until a job has written what it was sent, with a wrong byte. */
const wrote = (node: Node, kind: Job['kind']): Promise<true> =>
  eventually(async () => {
    const job = (await node.client.jobs()).find((each) => each.kind === kind)
    expect(job?.error).toBeUndefined()
    return (job?.bytesDone ?? 0) >= 1_000_000 ? true : undefined
  })

test('a hub that sends wrong bytes: a client of its mirror on demand sees none of them', async () => {
  const hub = await lyingHub()
  const node = await startNode({ hub_addr: '127.0.0.1:0' }, hub.endpoint)
  const address = JSON.parse(readFileSync(join(node.folder, 'runtime.json'), 'utf8')).hubMirrorAddress
  const seen: Buffer[] = []
  const over = new Promise<void>((resolve) => {
    const pull = get(`http://${address}/Acme/Model/resolve/main/${WEIGHTS}`, (response) => {
      if (response.statusCode === 200) response.on('data', (chunk: Buffer) => seen.push(chunk))
      else response.resume()
      response.on('close', () => resolve())
    })
    pull.on('error', () => resolve())
  })
  await wrote(node, 'import-hf')
  hub.goOn()
  await over
  expect(Buffer.concat(seen).equals(RIGHT.subarray(0, Buffer.concat(seen).length))).toBe(true)
})

test.each(['hub', 'registry'] as const)(
  'a %s that sends wrong bytes of a lost blob: a client of the OCI mirror gets the right ones',
  async (kind) => {
    const seed = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } })
    const share = await seed.publish({ [WEIGHTS]: RIGHT, 'config.json': '{"model_type":"llama"}' }, 'acme/model')
    const hub = await lyingHub()
    const registry = await liar(`http://${addressOf(seed)}`)
    const node = await startNode({ oci_addr: '127.0.0.1:0' }, hub.endpoint)
    expect(await node.importBt(pinned(share, { as: 'acme/model' }))).toMatchObject({ state: 'done' })
    unlinkSync(node.blobPath(digest))
    const { host } = new URL(registry.url)
    if (kind === 'hub') await node.client.importHf({ repo: 'Acme/Model', as: 'me/other' })
    else await node.client.importOci({ image: `${host}/acme/model:q8_0`, plainHttp: true, as: 'me/other' })
    await wrote(node, kind === 'hub' ? 'import-hf' : 'import-oci')
    const { promise: head, resolve } = Promise.withResolvers<number>()
    const pull = ask(node, `blobs/${digest}`, { onHead: resolve })
    expect(await head).toBe(200)
    hub.goOn()
    registry.goOn()
    const { body, isCut } = await pull
    expect([isCut, body.equals(RIGHT)]).toEqual([false, true])
  }
)
