import { expect, test } from 'vitest'
import { contentOf, kindOf, startWebseed } from '../swarm/fake-webseed.ts'
import { eventually, modelAlone, Node, pinned, refOf, weights } from '../swarm/nodes.ts'

const FILES = { 'model-q8_0.gguf': weights(300_009, 71), 'config.json': '{"model_type":"llama"}' }

test('what a web server has leaves disk and swarm, and comes back from there to both', async () => {
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
