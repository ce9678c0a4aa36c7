import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { PEER_MESSAGE, startTamperingPeer, type Tamper, type TamperingPeer } from '@svc/testkit/tampering-peer'
import { describe, expect, onTestFinished, test } from 'vitest'
import { sharedByFile } from '../support/daemon.ts'
import { type Answer, contentOf, documentsOnly, kindOf, startWebseed } from './fake-webseed.ts'
import { MIB, Node, pinned, weights } from './nodes.ts'

/** Two seeders of one artifact: an honest one, and the one that the liars hide behind. */
const swarm = sharedByFile(async (cleanUp) => {
  const files = { 'model-q8_0.gguf': weights(4 * MIB + 5, 21), 'tokenizer.json': '{}' }
  const honest = await Node.start({}, cleanUp)
  const share = await honest.publish(files)
  const other = await Node.start({}, cleanUp)
  const behind = await other.publish(files)
  expect(behind.infohash).toBe(share.infohash)
  return { share, content: await contentOf(share), honestPeer: share.peers[0]!, otherPeer: behind.peers[0]! }
})

async function liar(tamper: Tamper): Promise<TamperingPeer> {
  const { otherPeer } = await swarm()
  const peer = await startTamperingPeer(otherPeer, tamper)
  onTestFinished(() => peer.close())
  return peer
}

const corruptBlock: Tamper = (message, id) => {
  if (id === PEER_MESSAGE.piece) message[message.length - 1]! ^= 1
  return undefined
}
const corruptHashes: Tamper = (message, id) => {
  if (id === PEER_MESSAGE.hashes) message[message.length - 1]! ^= 1
  return undefined
}

describe('peers', () => {
  test('a lone peer that sends corrupt blocks: E_NOT_IMPORTABLE names it, and an honest one completes the next import', async () => {
    const { share, content, honestPeer } = await swarm()
    const lying = await liar(corruptBlock)
    const documents = await startWebseed(content, documentsOnly)
    const node = await Node.start({ swarm: { fill_timeout: 2 } })
    const failed = await node.importBt(pinned(share, { webseeds: [documents.url], peers: [lying.address] }))
    expect(failed).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
    expect(failed.error!.message).toContain(lying.address)
    await node.expectSound()
    expect(await node.importBt(pinned(share, { webseeds: [documents.url], peers: [honestPeer] }))).toMatchObject({
      state: 'done'
    })
    await node.expectWhole(share.manifestDigest)
  })

  test('beside an honest peer: the import is done, and a warning names the liar', async () => {
    const { share, content, honestPeer } = await swarm()
    const lying = await liar(corruptBlock)
    const documents = await startWebseed(content, documentsOnly)
    const node = await Node.start()
    const slow = await startTamperingPeer(honestPeer, undefined, lying.passedOn(100_000))
    onTestFinished(() => slow.close())
    const job = await node.importBt(pinned(share, { webseeds: [documents.url], peers: [lying.address, slow.address] }))
    expect(job).toMatchObject({ state: 'done' })
    expect(job.result!.warnings).toEqual(expect.arrayContaining([expect.stringContaining(lying.address)]))
    await node.expectSound()
  })

  test('one that sends wrong hashes is dropped and named', async () => {
    const { share, content, honestPeer } = await swarm()
    const lying = await liar(corruptHashes)
    const manifestOnly = await startWebseed(content, only('manifest'))
    const node = await Node.start()
    const slow = await startTamperingPeer(honestPeer, undefined, lying.passedOn(500))
    onTestFinished(() => slow.close())
    const job = await node.importBt(
      pinned(share, { webseeds: [manifestOnly.url], peers: [lying.address, slow.address] })
    )
    expect(job).toMatchObject({ state: 'done' })
    await node.expectSound()
  })

  test('absurd lengths, unrequested blocks, garbage and silence do not prevent completion by an honest one', async () => {
    const { share, content, honestPeer } = await swarm()
    const absurd = await liar((_message, id) =>
      id === PEER_MESSAGE.piece ? Buffer.concat([Buffer.from('7fffffff07', 'hex'), randomBytes(100)]) : undefined
    )
    const shifted = await liar((message, id) => {
      if (id === PEER_MESSAGE.piece) message.writeUInt32BE(0x7fff_fff0, 9)
      return undefined
    })
    const garbage = await liar(() => randomBytes(64))
    const mute = createServer((socket) => void socket.on('error', () => undefined))
    mute.listen(0, '127.0.0.1')
    await once(mute, 'listening')
    onTestFinished(() => void mute.close())
    const documents = await startWebseed(content, documentsOnly)
    const node = await Node.start()
    const peers = [
      absurd.address,
      shifted.address,
      garbage.address,
      `127.0.0.1:${(mute.address() as AddressInfo).port}`,
      honestPeer
    ]
    const job = await node.importBt(pinned(share, { webseeds: [documents.url], peers }))
    expect(job).toMatchObject({ state: 'done' })
    await node.expectSound()
  })

  test('an import from a lone silent peer times out, and stores nothing', async () => {
    const { share, content } = await swarm()
    const silent = await liar((_message, id) => (id === PEER_MESSAGE.piece ? 'drop' : undefined))
    const documents = await startWebseed(content, documentsOnly)
    const node = await Node.start({ swarm: { fill_timeout: 2 } })
    const job = await node.importBt(pinned(share, { webseeds: [documents.url], peers: [silent.address] }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
    await node.expectSound()
    expect(await node.ensure(share.manifestDigest)).toMatchObject({
      state: 'failed',
      error: { code: 'E_SOURCE_UNAVAILABLE' }
    })
  })
})

/** Lies by name: what the webseed does with each kind of request. */
const LYING_WEBSEEDS: Record<string, Answer> = {
  'another manifest': (path, _request, response) =>
    kindOf(path) === 'manifest' && send(response, Buffer.from('{"schemaVersion":1}')),
  'an endless manifest': (path, _request, response) => kindOf(path) === 'manifest' && endless(response),
  'an endless manifest without an end in sight': (path, _request, response) =>
    kindOf(path) === 'manifest' && endless(response, 5_000_000_000),
  'layers with a flipped bit': (path, _request, response, bytes) =>
    kindOf(path) === 'layers' && send(response, flipped(bytes!)),
  'endless layers': (path, _request, response) => kindOf(path) === 'layers' && endless(response),
  'layers of nothing': (path, _request, response) => kindOf(path) === 'layers' && send(response, Buffer.from('de')),
  'corrupt ranges': (path, request, response, bytes) =>
    kindOf(path) === 'file' && bytes !== undefined && range(request, response, flipped(bytes)),
  'bodies longer than the range': (path, request, response, bytes) =>
    kindOf(path) === 'file' && bytes !== undefined && range(request, response, bytes, Buffer.alloc(100_000)),
  'endless bodies': (path, _request, response) => kindOf(path) === 'file' && endless(response),
  'short bodies': (path, request, response, bytes) => {
    if (kindOf(path) !== 'file' || bytes === undefined) return false
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!
    response.writeHead(206, {
      'Content-Length': Number(end) + 1 - Number(start),
      'Content-Range': `bytes ${start}-${end}/${bytes.length}`
    })
    response.write(bytes.subarray(Number(start), Number(start) + 10), () => response.destroy())
    return true
  },
  'another range than asked for': (path, request, response, bytes) => {
    if (kindOf(path) !== 'file' || bytes === undefined) return false
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!
    response.writeHead(206, { 'Content-Range': `bytes ${Number(start) + 1}-${Number(end) + 1}/${bytes.length}` })
    response.end(bytes.subarray(Number(start) + 1, Number(end) + 2))
    return true
  },
  '404 for every file': documentsOnly,
  '503 for every file': (path, _request, response) =>
    kindOf(path) === 'file' && void response.writeHead(503).end() === undefined,
  'an encoded body': (path, _request, response, bytes) =>
    kindOf(path) === 'file' && bytes !== undefined && send(response, bytes, { 'Content-Encoding': 'gzip' })
}

describe('webseeds', () => {
  test.each(Object.entries(LYING_WEBSEEDS))(
    '%s: an honest one completes the import, and the liar is named',
    async (what, answer) => {
      const { share, content } = await swarm()
      const { promise: lied, resolve: told } = Promise.withResolvers<void>()
      const lying = await startWebseed(content, (path, request, response, bytes) => {
        let lies: boolean | void = false
        response.once('close', () => lies === true && told())
        lies = answer(path, request, response, bytes)
        return lies
      })
      // on a busy machine it could have given everything before the liar is heard.
      const patience = HARMLESS.has(what) ? undefined : lied
      const honest = await startWebseed(content, () => false, patience)
      const node = await Node.start()
      const job = await node.importBt(pinned(share, { webseeds: [lying.url, honest.url], peers: [] }))
      expect(job.error?.message).toBeUndefined()
      expect(job).toMatchObject({ state: 'done' })
      await node.expectWhole(share.manifestDigest)
      await node.expectSound()
      // both are asked at once, so the liar always gets its turn
      expect(lying.requests.length).toBeGreaterThan(0)
      const warnings = job.result!.warnings ?? []
      expect(warnings.filter((warning) => warning.includes(honest.url))).toEqual([])
      if (!HARMLESS.has(what)) expect(warnings).toEqual(expect.arrayContaining([expect.stringContaining(lying.url)]))
    }
  )

  test('an honest 200 without ranges is used', async () => {
    const { share, content } = await swarm()
    const plain = await startWebseed(
      content,
      (path, _request, response, bytes) => kindOf(path) === 'file' && bytes !== undefined && send(response, bytes)
    )
    const node = await Node.start()
    expect(await node.importBt(pinned(share, { webseeds: [plain.url], peers: [] }))).toMatchObject({ state: 'done' })
    await node.expectWhole(share.manifestDigest)
  })

  test('a redirect to loopback that only the webseed named is not followed', async () => {
    const { share, content, honestPeer } = await swarm()
    const target = await startWebseed(content)
    const { promise: lied, resolve: told } = Promise.withResolvers<void>()
    const lying = await startWebseed(content, (path, request, response) => {
      if (path.startsWith('/bt/')) return false
      if (kindOf(path) === 'file') response.once('close', told)
      response.writeHead(302, { Location: `${target.url}${request.url!.slice(1)}` }).end()
      return true
    })
    const documents = await startWebseed(content, documentsOnly)
    const slow = await startTamperingPeer(honestPeer, undefined, lied)
    onTestFinished(() => slow.close())
    const node = await Node.start()
    const job = await node.importBt(pinned(share, { webseeds: [lying.url, documents.url], peers: [slow.address] }))
    expect(job).toMatchObject({ state: 'done' })
    expect(target.requests).toEqual([])
    expect(job.result!.warnings).toEqual(expect.arrayContaining([expect.stringContaining(lying.url)]))
  })

  test('corrupt ranges from the only source are E_NOT_IMPORTABLE; an honest source then completes the import', async () => {
    const { share, content } = await swarm()
    const lying = await startWebseed(content, LYING_WEBSEEDS['corrupt ranges'])
    const node = await Node.start({ swarm: { fill_timeout: 2 } })
    const job = await node.importBt(pinned(share, { webseeds: [lying.url], peers: [] }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
    expect(job.error!.message).toContain(lying.url)
    await node.expectSound()
    expect(await node.importBt(pinned(share))).toMatchObject({ state: 'done' })
    await node.expectWhole(share.manifestDigest)
  })
})

describe('identity', () => {
  test('an infohash that does not belong to the pin is not importable, and no byte is asked for', async () => {
    const { share, content } = await swarm()
    const plain = await startWebseed(content)
    const node = await Node.start()
    const job = await node.importBt(pinned(share, { infohash: `btmh:1220${'00'.repeat(32)}`, webseeds: [plain.url] }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
    expect(plain.requests.filter((path) => kindOf(path) !== 'manifest')).toEqual([])
    expect(node.blobs()).toEqual([])
  })

  test('pinned bytes that are not a manifest are not importable', async () => {
    const { share } = await swarm()
    const bytes = Buffer.from('{"schemaVersion":1,"files":[]}')
    const manifestDigest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    const hex = manifestDigest.slice(7)
    const plain = await startWebseed(new Map([[`/svc-sha256-${hex.slice(0, 12)}/manifest/sha256-${hex}`, bytes]]))
    const node = await Node.start()
    const job = await node.importBt(pinned(share, { manifestDigest, webseeds: [plain.url] }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
    expect(node.blobs()).toEqual([])
  })

  test.each<[string, Answer]>([
    [
      'nobody has the pinned manifest',
      (path, _request, response) => kindOf(path) === 'manifest' && void response.writeHead(404).end() === undefined
    ],
    ['the webseed answers other bytes than the pin', LYING_WEBSEEDS['another manifest']!]
  ])('%s: E_SOURCE_UNAVAILABLE', async (_what, answer) => {
    const { share, content } = await swarm()
    const lying = await startWebseed(content, answer)
    const node = await Node.start()
    const job = await node.importBt(pinned(share, { webseeds: [lying.url] }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
    expect(job.error!.message).toContain(lying.url)
    expect(node.blobs()).toEqual([])
  })
})

/** Lies that are seen through without harm: what was asked for is there all the same. */
const HARMLESS = new Set(['bodies longer than the range'])

const only =
  (kind: ReturnType<typeof kindOf>): Answer =>
  (path, _request, response) => {
    if (kindOf(path) === kind) return false
    response.writeHead(404).end()
    return true
  }

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes)
  for (let at = 0; at < copy.length; at += 10_000) copy[at]! ^= 1
  copy[copy.length - 1]! ^= 1
  return copy
}

function send(response: ServerResponse, bytes: Buffer, headers: Record<string, string> = {}): true {
  response.writeHead(200, { 'Content-Length': bytes.length, ...headers })
  response.end(bytes)
  return true
}

function range(request: IncomingMessage, response: ServerResponse, bytes: Buffer, tail = Buffer.alloc(0)): true {
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!
  response.writeHead(206, { 'Content-Range': `bytes ${start}-${end}/${bytes.length}` })
  response.end(Buffer.concat([bytes.subarray(Number(start), Number(end) + 1), tail]))
  return true
}

/** Zeros until the other side has enough of them. */
function endless(response: ServerResponse, contentLength?: number): true {
  response.writeHead(200, contentLength === undefined ? {} : { 'Content-Length': contentLength })
  const chunk = Buffer.alloc(1 << 18)
  const more = (): void => {
    while (!response.destroyed && response.write(chunk));
    if (!response.destroyed) response.once('drain', more)
  }
  response.on('error', () => undefined)
  more()
  return true
}
