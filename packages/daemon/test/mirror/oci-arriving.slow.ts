// The OCI mirror of a node that has the manifest of an artifact: clients pull while its bytes arrive from another daemon.
import { once } from 'node:events'
import { readdirSync, readFileSync, unlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { haveSkopeo, skopeo } from '@svc/testkit/registry'
import { expect, test } from 'vitest'
import { ApiClient, sharedByFile } from '../support/daemon.ts'
import { eventually, MIB, Node, pinned, weights } from '../swarm/nodes.ts'
import { addressOf, ask, digestOf, type Got, gated, importing } from './arriving.ts'

const WEIGHTS = 'model-q8_0.gguf'
const FILES = {
  [WEIGHTS]: weights(6 * MIB + 9, 61),
  'config.json': '{"model_type":"llama"}',
  'tokenizer.json': '{"version":"1.0"}',
  'chat_template.jinja': '{{ messages }}'
}
/** A busy machine takes a while just to start a daemon. */
const LONG = { timeout: 180_000 }
const ON_DEMAND = { oci_addr: '127.0.0.1:0', on_demand: true }

const source = sharedByFile(async (cleanUp) => {
  const node = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } }, cleanUp)
  return { node, share: await node.publish(FILES, 'acme/model') }
})

const settled = (work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))])

const digest = digestOf(FILES[WEIGHTS]!)
const isSmall = (path: string): boolean => !path.endsWith('.gguf')

test("a pull that starts before the first byte waits for each part, and gets the seed's bytes", LONG, async () => {
  const { node: seed, share } = await source()
  const gate = await gated(share)
  const node = await importing(gate, share, {})
  expect(await ask(node, 'tags/list')).toMatchObject({ status: 404 })
  expect(await ask(node, 'manifests/q4_0', { method: 'PUT' })).toMatchObject({ status: 405 })

  // the manifest: as soon as the small files that it describes are here
  const manifest = ask(node, 'manifests/q8_0')
  const head = ask(node, 'manifests/q8_0', { method: 'HEAD' })
  expect(await settled(manifest)).toBe(false)
  gate.open(isSmall)
  const { status, body, headers } = await manifest
  expect(status).toBe(200)
  expect(body.equals((await ask(seed, 'manifests/q8_0')).body)).toBe(true)
  expect(await head).toMatchObject({ status: 200, headers: { 'docker-content-digest': digestOf(body) } })
  expect(headers['docker-content-digest']).toBe(digestOf(body))
  expect(await ask(node, `manifests/${digestOf(body)}`)).toMatchObject({ status: 200 })
  expect(await ask(node, `manifests/sha256:${'0'.repeat(64)}`)).toMatchObject({ status: 404 })
  expect(JSON.parse((await ask(node, 'tags/list')).body.toString())).toMatchObject({ tags: ['q8_0'] })
  const small = JSON.parse(body.toString()).layers.filter((layer: { digest: string }) => layer.digest !== digest)
  for (const { digest: each, size } of [JSON.parse(body.toString()).config, ...small])
    expect((await ask(node, `blobs/${each}`)).body).toHaveLength(size)

  // the weights: the head at once, the body as it arrives
  expect(await ask(node, `blobs/${digest}`, { method: 'HEAD' })).toMatchObject({
    status: 200,
    headers: { 'content-length': `${FILES[WEIGHTS]!.length}`, 'docker-content-digest': digest }
  })
  const heads: Promise<number>[] = []
  const headed = (range?: string): Promise<Got> => {
    const { promise, resolve } = Promise.withResolvers<number>()
    heads.push(promise)
    return ask(node, `blobs/${digest}`, { onHead: resolve, ...(range !== undefined && { range }) })
  }
  const bodies = [headed(), headed(`bytes=${5 * MIB}-`), headed('bytes=10-19')]
  expect(await Promise.all(heads)).toEqual([200, 206, 206])
  expect(await ask(node, `blobs/${digest}`, { range: 'bytes=99999999-' })).toMatchObject({ status: 416 })
  expect(await settled(Promise.race(bodies))).toBe(false)
  gate.open()
  const [whole, end, part] = await Promise.all(bodies)
  expect(whole!.body.equals(FILES[WEIGHTS]!)).toBe(true)
  expect(end!.body.equals(FILES[WEIGHTS]!.subarray(5 * MIB))).toBe(true)
  expect(part!.body.equals(FILES[WEIGHTS]!.subarray(10, 20))).toBe(true)

  // afterwards nothing has changed for a client
  await eventually(async () => {
    const [job] = await node.client.jobs()
    return job?.state === 'done' ? true : undefined
  })
  expect((await ask(node, 'manifests/q8_0')).body.equals(body)).toBe(true)
  await node.expectWhole(share.manifestDigest)
})

test.skipIf(!haveSkopeo)('skopeo copies an artifact that starts to arrive only then', LONG, async () => {
  const { share } = await source()
  const gate = await gated(share)
  const node = await importing(gate, share, {})
  const target = join(node.folder, 'by-skopeo')
  const image = `docker://${addressOf(node)}/acme/model:q8_0`
  const copied = skopeo('copy', '--preserve-digests', '--src-tls-verify=false', image, `dir:${target}`)
  copied.catch(() => undefined)
  await eventually(async () => ((await waitingAt(node)) > 0 ? true : undefined))
  gate.open(isSmall)
  // it has the manifest and reads the body of the weights
  await eventually(async () => ((await waitingAt(node)) > 0 && readdirSync(target).length > 0 ? true : undefined))
  gate.open()
  await copied
  expect(digestOf(readFileSync(join(target, digest.slice('sha256:'.length))))).toBe(digest)
})

/** Clients of the mirror that wait for something. */
async function waitingAt(node: Node): Promise<number> {
  const { bytes } = await new ApiClient(node.running.socketPath).get('/svcd/metrics')
  return Number(/^svc_mirror_waiting (\d+)$/m.exec(bytes.toString())![1])
}

test('clients that leave release their places; one with all places gives one up to another', LONG, async () => {
  const { share } = await source()
  const gate = await gated(share)
  const node = await importing(gate, share, {})
  const [, port] = addressOf(node).split(':')
  const sockets: Socket[] = []
  const client = async (from: string, path: string): Promise<{ readonly socket: Socket; text: string }> => {
    const socket = connect({ host: '127.0.0.1', port: Number(port), localAddress: from })
    const got = { socket, text: '' }
    sockets.push(socket)
    socket.on('error', () => undefined).on('data', (data) => (got.text += data.toString('latin1')))
    await once(socket, 'connect')
    socket.write(`GET /v2/acme/model/${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
    return got
  }
  const headOf = async (got: { readonly text: string }): Promise<number> =>
    Number((await eventually(() => (got.text.includes('\r\n') ? got.text : undefined))).slice(9, 12))
  const waiting = (count: number): Promise<true> =>
    eventually(async () => ((await waitingAt(node)) === count ? true : undefined))
  const one = process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1'

  // for the description, which takes up to 45 s
  await client(one, 'manifests/q8_0')
  await client(one, 'manifests/q8_0')
  await waiting(2)
  for (const socket of sockets) socket.resetAndDestroy()
  await waiting(0)

  // and for bytes: one host takes all waiting places
  gate.open(isSmall)
  expect(await ask(node, 'manifests/q8_0')).toMatchObject({ status: 200 })
  const all = await Promise.all(Array.from({ length: 256 }, () => client(one, `blobs/${digest}`)))
  await waiting(256)
  const cut = (): number => all.filter(({ socket }) => socket.closed).length
  expect(await headOf(await client(one, `blobs/${digest}`))).toBe(429)
  // a client that left silently looks like one that still reads, but goes first
  all[7]!.socket.end()
  await eventually(async () => ((await headOf(await client(one, `blobs/${digest}`))) === 200 ? true : undefined))
  await eventually(() => (all[7]!.socket.closed ? true : undefined))
  expect(cut()).toBe(1)

  if (one !== '127.0.0.1') {
    const { promise: head, resolve } = Promise.withResolvers<number>()
    const other = ask(node, `blobs/${digest}`, { onHead: resolve })
    expect(await head).toBe(200)
    await eventually(() => (cut() === 2 ? true : undefined))
    for (const socket of sockets) socket.resetAndDestroy()
    await waiting(1)
    gate.open()
    expect((await other).body.equals(FILES[WEIGHTS]!)).toBe(true)
  }
  for (const socket of sockets) socket.destroy()
})

test('an interrupted import resumes for a client, if clients may start downloads', LONG, async () => {
  const { share } = await source()
  const gate = await gated(share)
  const first = await importing(gate, share, {})
  await first.stop()
  const closed = await Node.start({ folder: first.folder, mirror: { oci_addr: '127.0.0.1:0' } })
  for (const path of ['manifests/q8_0', `blobs/${digest}`, 'tags/list'])
    expect(await ask(closed, path), path).toMatchObject({ status: 404 })
  await closed.stop()
  const other = await Node.start({ folder: first.folder, mirror: { ...ON_DEMAND, on_demand_allow: ['other/*'] } })
  expect(await ask(other, 'manifests/q8_0')).toMatchObject({ status: 404 })
  await other.stop()
  const spent = await Node.start({ folder: first.folder, mirror: { ...ON_DEMAND, on_demand_bytes: 1000 } })
  expect(await ask(spent, 'manifests/q8_0')).toMatchObject({ status: 507 })
  await spent.stop()

  gate.open()
  const node = await Node.start({ folder: first.folder, mirror: { ...ON_DEMAND, on_demand_allow: ['acme/*'] } })
  await node.client.setPrivate({ ref: `svc:///by/digest@${share.manifestDigest}`, private: true })
  const asked = gate.asked.length
  expect(await ask(node, `blobs/${digest}`)).toMatchObject({ status: 404 })
  expect(gate.asked.length).toBe(asked)
  await node.client.setPrivate({ ref: `svc:///by/digest@${share.manifestDigest}`, private: false })
  const blob = await ask(node, `blobs/${digest}`)
  expect(blob.body.equals(FILES[WEIGHTS]!)).toBe(true)
  expect(await ask(node, 'manifests/q8_0')).toMatchObject({ status: 200 })
  await eventually(async () => ((await node.client.models()).namespaces.length > 0 ? true : undefined))
  expect(await node.client.resolve('svc:///acme/model:q8_0')).toMatchObject({ manifestDigest: share.manifestDigest })
})

test('a lost blob is fetched again for a client; without a source the client gets an error', LONG, async () => {
  const { share } = await source()
  const node = await Node.start({ mirror: ON_DEMAND })
  expect(await node.importBt(pinned(share, { as: 'acme/model' }))).toMatchObject({ state: 'done' })
  const { body } = await ask(node, 'manifests/q8_0')
  unlinkSync(node.blobPath(digest))
  const blob = await ask(node, `blobs/${digest}`)
  expect(blob.body.equals(FILES[WEIGHTS]!)).toBe(true)
  expect((await ask(node, 'manifests/q8_0')).body.equals(body)).toBe(true)

  const lonely = await Node.start({ mirror: ON_DEMAND, swarm: { fill_timeout: 1 } })
  await lonely.importFiles(FILES, 'acme/model')
  unlinkSync(lonely.blobPath(digest))
  expect((await ask(lonely, 'manifests/q8_0')).status).toBe(200)
  expect(await ask(lonely, `blobs/${digest}`)).toMatchObject({ status: 200, isCut: true, body: Buffer.alloc(0) })
  expect(await ask(lonely, `blobs/${digest}`)).toMatchObject({ status: 503, headers: { 'retry-after': '30' } })
})
