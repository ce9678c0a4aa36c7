// The S3 mirror of a node that has the manifest of an artifact: clients list and read while its bytes arrive from another daemon.
import { once } from 'node:events'
import { readFileSync, unlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ApiClient, sharedByFile } from '../support/daemon.ts'
import { safetensors } from '../support/models.ts'
import { eventually, MIB, Node, pinned } from '../swarm/nodes.ts'
import { digestOf, gated, importing, mirroring } from './arriving.ts'
import { s3Of } from './s3-client.ts'

const WEIGHTS = safetensors(3 * MIB)
const FILES = {
  'model.safetensors': WEIGHTS,
  'config.json': '{"model_type":"llama"}',
  'tokenizer.json': '{"version":"1.0"}'
}
const LONG = { timeout: 180_000 }
const S3 = { s3_addr: '127.0.0.1:0' }
const OBJECT = '/models/acme/model/bf16/model.safetensors'
const LIST = '/models?list-type=2&prefix=acme/model/'

const source = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  return { node, share: await node.publish(FILES, 'acme/model') }
})

const settled = (work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))])

const s3At = (node: Node): ReturnType<typeof s3Of> => s3Of(node.running.socketPath)
const isSmall = (path: string): boolean => !path.endsWith('.safetensors')
const keysIn = (text: string): string[] => [...text.matchAll(/<Key>([^<]*)/g)].map(([, key]) => key!)

/** Clients of the mirror that wait for something. */
async function waitingAt(node: Node): Promise<number> {
  const { bytes } = await new ApiClient(node.running.socketPath).get('/svcd/metrics')
  return Number(/^svc_mirror_waiting (\d+)$/m.exec(bytes.toString())![1])
}

test('an arriving file is listed as it will be, and each part is sent once its pieces are proven', LONG, async () => {
  const { share } = await source()
  const gate = await gated(share)
  const node = await importing(gate, share, S3)
  const s3 = s3At(node)
  // its files are not known before the small ones are here
  const listed = s3(LIST)
  const config = s3('/models/acme/model/bf16/config.json')
  await eventually(async () => ((await waitingAt(node)) === 2 ? true : undefined))
  expect(keysIn((await s3('/models?list-type=2')).text)).toEqual([])
  gate.open(isSmall)
  const keys = keysIn((await listed).text)
  expect(keys).toEqual([
    'acme/model/bf16/config.json',
    'acme/model/bf16/model.safetensors',
    'acme/model/bf16/tokenizer.json'
  ])
  expect((await config).text).toBe(FILES['config.json'])
  expect(keysIn((await s3('/models?list-type=2')).text)).toEqual(keys)
  const shown = (await s3(LIST)).text
  const sizes = [...shown.matchAll(/<Size>(\d+)/g)].map(([, size]) => Number(size))
  expect(sizes).toContain(WEIGHTS.length)
  const head = await s3(OBJECT, { method: 'HEAD' })
  expect([head.status, head.headers['content-length']]).toEqual([200, `${WEIGHTS.length}`])

  // the whole file waits; a part is sent to its last byte while the rest cannot be fetched
  const whole = s3(OBJECT, { headers: { 'x-amz-checksum-mode': 'ENABLED' } })
  const late = s3(OBJECT, { headers: { range: `bytes=-${MIB}` } })
  const early = s3(OBJECT, { headers: { range: 'bytes=0-99999' } })
  expect(await settled(early)).toBe(false)
  gate.open((path, start) => isSmall(path) || start < 2 * MIB)
  const first = await early
  expect([first.status, first.isCut, first.body.equals(WEIGHTS.subarray(0, 100_000))]).toEqual([206, false, true])
  expect((await node.client.jobs()).map(({ state }) => state)).toEqual(['fetching'])
  expect(await settled(late)).toBe(false)
  gate.open()
  expect((await late).body.equals(WEIGHTS.subarray(WEIGHTS.length - MIB))).toBe(true)
  const all = await whole
  expect([all.status, all.isCut, all.body.equals(WEIGHTS)]).toEqual([200, false, true])
  await eventually(async () => ((await node.client.jobs())[0]?.state === 'done' ? true : undefined))
  // with its time: clients copy newer files again
  expect((await s3(LIST)).text).toBe(shown)
  expect((await s3(OBJECT)).headers.etag).toBe(head.headers.etag)
  expect(await waitingAt(node)).toBe(0)
})

test(
  'clients that leave release their places; a failed fetch ends its readers, and later clients get 503',
  LONG,
  async () => {
    const { share } = await source()
    const gate = await gated(share)
    const node = await importing(gate, share, S3)
    gate.open(isSmall)
    const s3 = s3At(node)
    expect((await s3(LIST)).status).toBe(200)
    const { s3MirrorAddress } = JSON.parse(readFileSync(join(node.folder, 'runtime.json'), 'utf8'))
    const port = Number(s3MirrorAddress.split(':')[1])
    const sockets: Socket[] = []
    for (let i = 0; i < 8; i++) {
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket)
      socket.write(`GET ${OBJECT} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nRange: bytes=${i}-\r\n\r\n`)
      await once(socket, 'data')
    }
    await eventually(async () => ((await waitingAt(node)) === 8 ? true : undefined))
    for (const socket of sockets) socket.resetAndDestroy()
    await eventually(async () => ((await waitingAt(node)) === 0 ? true : undefined))
    const reading = s3(OBJECT)
    await eventually(async () => ((await waitingAt(node)) === 1 ? true : undefined))
    const [job] = await node.client.jobs()
    await node.client.cancelJob(job!.id)
    const cut = await reading
    expect([cut.status, cut.isCut]).toEqual([200, true])
    expect((await s3(OBJECT)).code).toBe('NoSuchKey')
  }
)

test(
  'a lost blob is fetched again for a client; without a source the response ends, and later ones report it',
  LONG,
  async () => {
    const { share } = await source()
    const node = await mirroring({ ...S3, on_demand: true })
    expect(await node.importBt(pinned(share, { as: 'acme/model' }))).toMatchObject({ state: 'done' })
    const lost = digestOf(WEIGHTS)
    unlinkSync(node.blobPath(lost))
    const s3 = s3At(node)
    expect(keysIn((await s3(LIST)).text)).toContain('acme/model/bf16/model.safetensors')
    expect((await s3(OBJECT, { method: 'HEAD' })).status).toBe(200)
    expect((await node.client.jobs()).length).toBe(1)
    expect((await s3(OBJECT, { headers: { range: 'bytes=5-9' } })).body.equals(WEIGHTS.subarray(5, 10))).toBe(true)
    expect((await s3(OBJECT)).body.equals(WEIGHTS)).toBe(true)

    const lonely = await mirroring({ ...S3, on_demand: true }, undefined, 1)
    await lonely.importFiles(FILES, 'acme/model')
    unlinkSync(lonely.blobPath(lost))
    expect(await s3At(lonely)(OBJECT)).toMatchObject({ status: 200, isCut: true, body: Buffer.alloc(0) })
    expect(await s3At(lonely)(OBJECT)).toMatchObject({ status: 503, code: 'ServiceUnavailable' })
  }
)

test('an evicted model is listed and readable only while it is fetched again', LONG, async () => {
  const { share } = await source()
  const gate = await gated(share)
  gate.open()
  const node = await importing(gate, share, S3)
  const s3 = s3At(node)
  const job = await eventually(async () => (await node.client.jobs())[0])
  expect(await node.done(job)).toMatchObject({ state: 'done' })
  const ref = 'svc:///acme/model:bf16'
  expect(await node.done(await node.client.evict({ ref }))).toMatchObject({ state: 'done' })
  expect(keysIn((await s3('/models?list-type=2')).text)).toEqual([])
  expect((await s3(OBJECT)).code).toBe('NoSuchKey')

  gate.open(isSmall)
  const back = await node.client.ensure({ ref })
  for (const list of [LIST, '/models?list-type=2']) expect(keysIn((await s3(list)).text)).toHaveLength(3)
  const part = s3(OBJECT, { headers: { range: `bytes=-${MIB}` } })
  expect(await settled(part)).toBe(false)
  gate.open()
  expect((await part).body.equals(WEIGHTS.subarray(WEIGHTS.length - MIB))).toBe(true)
  expect(await node.done(back)).toMatchObject({ state: 'done' })
  expect((await s3(OBJECT)).body.equals(WEIGHTS)).toBe(true)
})
