import { expect, test } from 'vitest'
import { contentOf, kindOf, startWebseed } from '../swarm/fake-webseed.ts'
import { eventually, modelAlone, Node, pinned, refOf, weights } from '../swarm/nodes.ts'

const FILES = { 'model-q8_0.gguf': weights(300_009, 71), 'config.json': '{"model_type":"llama"}' }

test('a model on a web server is evicted from disk and swarm, and fetched back from it', async () => {
  const publisher = await Node.start()
  const share = modelAlone(await publisher.publish(FILES))
  let isShort = false
  let isDown = false
  const webseed = await startWebseed(await contentOf(share), (path, request, response, bytes) => {
    if (isDown) {
      request.socket.destroy()
      return true
    }
    if (!isShort || kindOf(path) !== 'file') return false
    response.writeHead(206, { 'Content-Range': `bytes 0-0/${bytes!.length - 1}`, 'Content-Length': 1 }).end('x')
    return true
  })
  await publisher.stop()
  const node = await Node.start()
  expect(await node.importBt(pinned(share, { webseeds: [webseed.url], peers: [] }))).toMatchObject({ state: 'done' })
  const ref = refOf(share.manifestDigest)
  const evict = async () => node.done(await node.client.evict({ ref }))
  const seeds = async (): Promise<number> => (await node.client.status()).swarm.seeding
  await eventually(async () => ((await seeds()) === 1 ? true : undefined))

  isShort = true
  expect(await evict()).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  isShort = false
  isDown = true
  expect(await evict()).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  isDown = false
  expect(await evict()).toMatchObject({ state: 'done', result: { bytes: 300_009 } })
  expect(await seeds()).toBe(0)

  expect(await node.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  await node.expectWhole(share.manifestDigest)
  await eventually(async () => ((await seeds()) === 1 ? true : undefined))
})

test('a web server with other files of the same sizes does not count as a copy', async () => {
  const publisher = await Node.start()
  const share = modelAlone(await publisher.publish(FILES))
  let isOther = false
  const webseed = await startWebseed(await contentOf(share), (path, request, response, bytes) => {
    if (!isOther || kindOf(path) !== 'file') return false
    const [start, end] = /^bytes=(\d+)-(\d+)$/
      .exec(request.headers.range ?? '')!
      .slice(1)
      .map(Number)
    const other = Buffer.from(bytes!).map((byte, i) => (i < 1000 ? byte : byte ^ 0xff))
    const part = other.subarray(start, end! + 1)
    response.writeHead(206, {
      'Content-Range': `bytes ${start}-${start! + part.length - 1}/${other.length}`,
      'Content-Length': part.length
    })
    response.end(part)
    return true
  })
  await publisher.stop()
  const node = await Node.start()
  expect(await node.importBt(pinned(share, { webseeds: [webseed.url], peers: [] }))).toMatchObject({ state: 'done' })
  isOther = true
  const job = await node.done(await node.client.evict({ ref: refOf(share.manifestDigest) }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  await node.expectWhole(share.manifestDigest)
})

test("this daemon's own webseed does not count as a copy", async () => {
  const node = await Node.start({ swarm: { webseed_addr: '127.0.0.1:0' } })
  const share = await node.publish(FILES)
  // its own share, imported where it came from
  const { webseed } = await node.addresses()
  expect(await node.importBt(pinned(share, { webseeds: [webseed], peers: [] }))).toMatchObject({ state: 'done' })
  const job = await node.done(await node.client.evict({ ref: refOf(share.manifestDigest) }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  await node.expectWhole(share.manifestDigest)
})

test('an eviction that frees nothing leaves the model in the swarm', async () => {
  const node = await Node.start()
  const share = await node.publish(FILES)
  await node.publish({ ...FILES, 'config.json': '{"model_type":"llama","of":"another"}' }, 'me/other')
  const job = await node.done(await node.client.evict({ ref: refOf(share.manifestDigest), force: true }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  expect((await node.share(share.manifestDigest)).announced).toBe(true)
})
