import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { DialPolicy, PeerAddress } from '@svc/internal-net'
import { startTracker } from '@svc/testkit/tracker'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { afterEach, expect, test, vi } from 'vitest'
import { Trackers } from '../src/tracker.ts'
import { tryParseTrackerUrl } from '../src/tracker-url.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Announcing {
  readonly trackers: Trackers
  readonly found: { readonly peer: PeerAddress; readonly allowPrivate: boolean }[]
  readonly warnings: string[]
}

function announce(
  urls: readonly string[],
  more: { readonly policy?: DialPolicy; readonly port?: number; readonly clock?: VirtualClock } = {}
): Announcing {
  const found: Announcing['found'] = []
  const warnings: string[] = []
  const trackers = new Trackers({
    urls,
    infohash: Buffer.alloc(20, 1),
    peerId: Buffer.alloc(20, more.port ?? 2),
    port: more.port ?? 1_000,
    policy: more.policy ?? 'owner',
    stats: () => ({ uploaded: 0, downloaded: 0, left: 5 }),
    found: (peer, allowPrivate) => void found.push({ peer, allowPrivate }),
    warn: (message) => void warnings.push(message),
    ...(more.clock && { clock: more.clock })
  })
  cleanups.push(() => trackers.close())
  return { trackers, found, warnings }
}

async function http(listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/announce`
}

const PEER = Buffer.from('d8:intervali1800e5:peers6:\x01\x02\x03\x04\x00\x50e', 'latin1')

test('unusable, failing or lying trackers do not affect the others', async () => {
  const tracker = await startTracker()
  cleanups.push(() => tracker.close())
  const garbage = createSocket('udp4', (_, { port, address }) => garbage.send('garbage', port, address))
  garbage.bind(0, '127.0.0.1')
  await once(garbage, 'listening')
  cleanups.push(() => garbage.close())
  const bad = [
    'udp://127.0.0.1:0/announce',
    'udp://host:0',
    'http://a\0b/announce',
    'http://127.0.0.1:1/announce',
    `udp://127.0.0.1:${garbage.address().port}`,
    await http((_, response) => void response.end('garbage')),
    await http((_, response) => void response.writeHead(500).end())
  ]
  announce([tracker.http], { port: 1_111 })
  announce([tracker.udp], { port: 2_222 })
  const { found, warnings } = announce([...bad, tracker.http, tracker.udp], { port: 3_333 })
  await expect.poll(() => found.map(({ peer }) => peer.port)).toEqual(expect.arrayContaining([1_111, 2_222]))
  await expect.poll(() => warnings.length).toBeGreaterThanOrEqual(6)
})

test('an answer with unsorted keys is read: chihaya sends some', async () => {
  const answer = 'd12:min intervali5e5:peers6:\x01\x02\x03\x04\x00\x508:completei0e10:incompletei2e8:intervali60ee'
  const { found, warnings } = announce([await http((_, response) => void response.end(Buffer.from(answer, 'latin1')))])
  await expect.poll(() => found.length).toBe(1)
  expect(warnings).toEqual([])
})

test('an endless answer is cut off with its connection', async () => {
  let sent = 0
  const closed = Promise.withResolvers<void>()
  const url = await http((_, response) => {
    const more = (): void => {
      if (response.destroyed) return
      sent += 65_536
      response.write(Buffer.alloc(65_536, '1'))
    }
    response.on('drain', more)
    response.on('close', () => closed.resolve())
    more()
  })
  const { warnings } = announce([url])
  await closed.promise
  await expect.poll(() => warnings.length).toBe(1)
  expect(sent).toBeLessThan(16 << 20)
})

test('three redirects are followed, not more', async () => {
  let hops = 0
  const url = await http((request, response) => {
    hops += 1
    if (request.url!.startsWith('/end')) response.end(PEER)
    else response.writeHead(302, { location: request.url!.startsWith('/announce') ? '/end' : '/again' }).end()
  })
  const { found } = announce([url])
  await expect.poll(() => found.length).toBe(1)
  expect(hops).toBe(2)
  const endless = announce([url.replace('/announce', '/loop')])
  await expect.poll(() => endless.warnings.length).toBe(1)
  expect(hops).toBe(6)
})

test('a tracker may name private peers only if it answered from a private address; names are not resolved', async () => {
  const url = await http((_, response) => void response.end(PEER))
  const { found } = announce([url.replace('127.0.0.1', 'localhost')])
  await expect.poll(() => found).toEqual([{ peer: { host: '1.2.3.4', port: 80 }, allowPrivate: true }])
})

test.each(['127.0.0.1', 'localhost'])("no tracker at %s is contacted on a stranger's word", async (host) => {
  let asked = 0
  const url = await http((_, response) => {
    asked += 1
    response.end(PEER)
  })
  const udp = createSocket('udp4', () => void (asked += 1))
  udp.bind(0, '127.0.0.1')
  await once(udp, 'listening')
  cleanups.push(() => udp.close())
  const { warnings } = announce([url.replace('127.0.0.1', host), `udp://${host}:${udp.address().port}`], {
    policy: 'internet'
  })
  await expect.poll(() => warnings.length).toBe(2)
  expect(asked).toBe(0)
})

test.each([
  ['http://a.b/announce', 80],
  ['https://a.b/announce?key=1', 443],
  ['udp://[2001:db8::1]:6969', 6_969],
  ['udp://a.b:0', undefined],
  ['http://a.b:0/', undefined],
  ['http://user@a.b/', undefined],
  ['ws://a.b/', undefined],
  ['file:///etc/passwd', undefined],
  ['nothing', undefined]
])('a tracker URL: %s', (text, port) => {
  expect(tryParseTrackerUrl(text)?.port).toBe(port)
})

test('a tracker whose answer was not awaited is told that we stop', async () => {
  const heard: (string | null)[] = []
  const url = await http((request, response) => {
    const event = new URL(request.url!, 'http://tracker').searchParams.get('event')
    heard.push(event)
    if (event === 'stopped') response.end('d8:intervali1800e5:peers0:e')
  })
  const { trackers, warnings } = announce([url])
  await vi.waitUntil(() => heard.length > 0, { timeout: 30_000 })
  await trackers.close()
  expect(heard).toEqual(['started', 'stopped'])
  expect(warnings).toEqual([])
})

test('a tracker URL beyond all limits', () => {
  expect(tryParseTrackerUrl(`http://a.b/${'x'.repeat(3_000)}`)).toBeUndefined()
})

/** An announce has ended and the next one is awaited: of the clock, nothing else is left. */
async function rests(clock: VirtualClock, isAnswered: () => boolean): Promise<void> {
  while (!isAnswered() || clock.pending !== 1) await new Promise((resolve) => setImmediate(resolve))
}

test('retries of a failing tracker start after 15 s and back off to half an hour', async () => {
  const clock = new VirtualClock()
  let asked = 0
  const url = await http((_, response) => {
    asked += 1
    response.writeHead(500).end()
  })
  const { warnings } = announce([url], { clock })
  for (const [index, seconds] of [15, 30, 60, 120, 240, 480, 960, 1_800, 1_800].entries()) {
    await rests(clock, () => warnings.length === index + 1)
    await clock.advance(seconds * 1_000 - 1)
    expect([clock.pending, asked]).toEqual([1, index + 1])
    await clock.advance(1)
  }
  await rests(clock, () => warnings.length === 10)
  expect(asked).toBe(10)
})

test.each([
  ['i4000000e', 86_400],
  ['i-5e', 1_800],
  ['i0e', 1]
])('a tracker that asks for announces every %s seconds gets one after %d', async (interval, seconds) => {
  const clock = new VirtualClock()
  let asked = 0
  const url = await http((_, response) => {
    asked += 1
    response.end(`d8:interval${interval}5:peers0:e`)
  })
  const { trackers } = announce([url], { clock })
  await rests(clock, () => asked === 1)
  await clock.advance(seconds * 1_000 - 1)
  expect([clock.pending, asked]).toEqual([1, 1])
  await clock.advance(1)
  await rests(clock, () => asked === 2)
  await trackers.close()
})

test('a tracker that never answers is given up after 15 s', async () => {
  const clock = new VirtualClock()
  const arrived = Promise.withResolvers<void>()
  const { warnings } = announce([await http(() => arrived.resolve())], { clock })
  await arrived.promise
  await clock.advance(14_999)
  expect(warnings).toEqual([])
  await clock.advance(1)
  await rests(clock, () => warnings.length === 1)
})
