import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { encodeBencode } from '@svc/metainfo'
import { createSwarm } from '@svc/swarm'
import { StartedThreads } from '@svc/testkit/threads'
import { expect, onTestFinished } from 'vitest'
import { createLog } from '../../src/log.ts'
import { contentOf, documentsOnly, startWebseed } from './fake-webseed.ts'
import { eventually, MIB, Node, pinned, weights } from './nodes.ts'

const HOST = '127.0.0.1'

/**
 * A daemon that announces to a tracker and the DHT, gives a model to another one, and loses the DHT's thread meanwhile. The job is done
 * as if nothing had been; the thread starts again; its loss is logged once, and the tracker hears nothing of it.
 */
export async function loseDhtThread(how: 'kill' | 'hang'): Promise<void> {
  let started = 0
  const tracker = createServer(({ url = '' }, response) => {
    if (url.includes('event=started')) started += 1
    response.end('d8:intervali60e5:peers0:e')
  }).listen(0, HOST)
  onTestFinished(() => void tracker.close().closeAllConnections())
  await once(tracker, 'listening')
  const bootstrap = await createSwarm({ peerAddress: false, dht: { bootstrap: [], host: HOST } })
  onTestFinished(() => bootstrap.close())

  const threads = new StartedThreads()
  onTestFinished(() => threads.stop())
  const lines: { readonly level: string; readonly thread?: string; readonly count?: number }[] = []
  const log = createLog('info', 'json', { write: (line) => void lines.push(JSON.parse(line)) })
  const swarm = {
    trackers: [`http://${HOST}:${(tracker.address() as AddressInfo).port}/announce`],
    dht: true,
    dht_bootstrap: [`${HOST}:${bootstrap.dhtPort}`],
    upload_limit: 2 * MIB
  }
  const node = await Node.start({ swarm, more: { log } })
  const share = await node.publish({ 'm-q8_0.gguf': weights(4 * MIB, 3) })
  await eventually(() => (started === 1 ? true : undefined))
  threads.stop()
  const dhtPort = (await node.client.status()).swarm.dhtPort!
  await answersPing(dhtPort)

  const documents = await startWebseed(await contentOf(share), documentsOnly)
  const leech = await Node.start()
  const job = await leech.client.importBt(pinned(share, { webseeds: [documents.url] }))
  await eventually(async () => ((await node.client.status()).swarm.peers === 1 ? true : undefined))
  const again = new StartedThreads()
  onTestFinished(() => again.stop())
  await threads[how]('dht')
  expect(await leech.done(job)).toMatchObject({ state: 'done' })
  await leech.expectWhole(share.manifestDigest)

  await eventually(() => (again.count('dht') === 1 ? true : undefined))
  expect(started).toBe(1)
  expect((await node.client.status()).swarm.dhtPort).toBe(dhtPort)
  await answersPing(dhtPort)
  await node.expectSound()
  const faults = lines.filter(({ thread }) => thread !== undefined)
  expect(faults.map(({ level, thread, count }) => [level, thread, count])).toEqual([['warn', 'dht', 1]])
  expect(lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
}

/** Asks the DHT node until it answers. */
async function answersPing(port: number): Promise<void> {
  const socket = createSocket('udp4')
  const ping = encodeBencode({ t: 'aa', y: 'q', q: 'ping', a: { id: Buffer.alloc(20, 7) } })
  const send = (): void => socket.send(ping, port, HOST)
  const timer = setInterval(send, 200)
  send()
  await once(socket, 'message')
  clearInterval(timer)
  socket.close()
}
