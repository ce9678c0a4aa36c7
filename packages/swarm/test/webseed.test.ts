import { TorrentLayout } from '@svc/metainfo'
import { until } from '@svc/testkit/until'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { judgeRange, webseedUrl } from '../src/download/webseed-range.ts'
import { createFileStorage, type SwarmTorrent } from '../src/index.ts'
import { Engines, expectFiles } from './engines.ts'
import type { Fixture } from './torrent-fixture.ts'
import { honest, startWebseed, type WebseedHandler, type WebseedServer } from './webseed-server.ts'

const PIECE = 65_536
const engines = new Engines()
let fixture: Fixture
let servers: WebseedServer[]
beforeEach(async () => {
  servers = []
  fixture = await engines.torrent({ a: 1_500_000, 'dir/ö b+c.bin': 200_001, one: 1, empty: 0 }, PIECE)
})
afterEach(async () => {
  await engines.close()
  await Promise.all(servers.map((server) => server.close()))
})

async function webseed(handler?: WebseedHandler): Promise<WebseedServer> {
  const server = await startWebseed(fixture, handler)
  servers.push(server)
  return server
}

async function fetchFrom(urls: readonly string[]): Promise<{ torrent: SwarmTorrent; folder: string }> {
  const folder = await fixture.target('leech')
  const torrent = engines.watch(
    (await engines.open()).add({
      info: fixture.info,
      pieceLayers: fixture.layers,
      storage: createFileStorage(folder),
      webseeds: urls
    })
  )
  return { torrent, folder }
}

test('everything arrives from a webseed alone, in ranges of at least a megabyte', async () => {
  const server = await webseed()
  const { torrent, folder } = await fetchFrom([server.url])
  await torrent.completed()
  await expectFiles(fixture, folder)
  expect(server.requests.length).toBeLessThan(10)
  expect(engines.warningsOf(torrent)).toEqual([])
})

function body(
  response: Parameters<WebseedHandler>[1],
  bytes: Uint8Array,
  start: number,
  end: number,
  total: number
): void {
  response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${total}`, 'content-length': end - start })
  response.end(bytes)
}

describe('a webseed that lies is dropped for that file and named; an honest one completes', () => {
  test.each<[string, WebseedHandler]>([
    [
      'wrong bytes',
      (_q, response, { bytes, start, end }) =>
        body(
          response,
          bytes.slice(start, end).map((byte) => byte ^ 1),
          start,
          end,
          bytes.length
        )
    ],
    ['404', (_q, response) => response.writeHead(404).end()],
    ['416', (_q, response, { bytes }) => response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end()],
    [
      'another range',
      (_q, response, { bytes, start, end }) =>
        body(response, bytes.subarray(start, end), start + 1, end + 1, bytes.length)
    ],
    [
      'another size',
      (_q, response, { bytes, start, end }) => body(response, bytes.subarray(start, end), start, end, bytes.length + 1)
    ],
    [
      '206 without Content-Range',
      (_q, response, { bytes, start, end }) => response.writeHead(206).end(bytes.subarray(start, end))
    ],
    ['200 of another length', (_q, response) => response.writeHead(200, { 'content-length': 5 }).end('12345')],
    [
      'a coded body',
      (_q, response, { bytes, start, end }) =>
        response
          .writeHead(206, { 'content-encoding': 'gzip', 'content-range': `bytes ${start}-${end - 1}/${bytes.length}` })
          .end()
    ],
    [
      'a redirect to another port of loopback',
      (_q, response) => response.writeHead(302, { location: 'http://127.0.0.1:9/x' }).end()
    ],
    [
      'a redirect to a private name',
      (_q, response) => response.writeHead(302, { location: 'http://localhost:9/x' }).end()
    ],
    [
      'a redirect to the cloud metadata address',
      (_q, response) => response.writeHead(307, { location: 'http://169.254.169.254/' }).end()
    ],
    ['redirects in a circle', (request, response) => response.writeHead(302, { location: request.url! }).end()],
    ['a redirect to a file', (_q, response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end()],
    [
      'a body that ends early',
      (_q, response, { bytes, start, end }) => {
        response.writeHead(206, {
          'content-range': `bytes ${start}-${end - 1}/${bytes.length}`,
          'content-length': end - start
        })
        response.write(bytes.subarray(start, start + 10), () => response.destroy())
      }
    ],
    ['500', (_q, response) => response.writeHead(500).end()],
    ['a closed connection', (request) => request.socket.destroy()],
    [
      'an endless body of wrong bytes',
      (_q, response, { bytes, start, end }) => {
        response.writeHead(206, { 'content-range': `bytes ${start}-${end - 1}/${bytes.length}` })
        const more = (): void => {
          if (!response.destroyed) response.write(new Uint8Array(65_536), () => setImmediate(more))
        }
        more()
      }
    ]
  ])('%s', async (_name, handler) => {
    const liar = await webseed(handler)
    const { torrent, folder } = await fetchFrom([liar.url])
    await new Promise((resolve) => torrent.once('warning', resolve))
    expect(engines.warningsOf(torrent)[0]).toMatchObject({ kind: 'webseed', source: liar.url })
    const { address } = await engines.seed(fixture)
    torrent.addPeer(address)
    await torrent.completed()
    await expectFiles(fixture, folder)
  })

  test('it still serves its other files', async () => {
    const halfLiar = await webseed((request, response, file) => {
      if (file.path === 'a') response.writeHead(404).end()
      else honest(request, response, file)
    })
    const good = await webseed((request, response, file) => {
      if (file.path !== 'a') response.writeHead(404).end()
      else honest(request, response, file)
    })
    const { torrent, folder } = await fetchFrom([halfLiar.url, good.url])
    await torrent.completed()
    await expectFiles(fixture, folder)
  })

  test('200 with the whole file is read up to the range', async () => {
    const whole = await webseed((_q, response, { bytes }) =>
      response.writeHead(200, { 'content-length': bytes.length }).end(bytes)
    )
    const { torrent, folder } = await fetchFrom([whole.url])
    await torrent.completed()
    await expectFiles(fixture, folder)
  })

  test('a redirect within its own origin is followed', async () => {
    const moved = await webseed((request, response, file) => {
      if (request.url!.includes('?moved')) honest(request, response, file)
      else response.writeHead(302, { location: `${request.url}?moved` }).end()
    })
    const { torrent } = await fetchFrom([moved.url])
    await new Promise((resolve) => torrent.once('piece', resolve))
  })
})

test('a webseed that answers but sends nothing does not delay a peer', async () => {
  const stuck = await webseed((_q, response, { bytes, start, end }) => {
    response.writeHead(206, {
      'content-range': `bytes ${start}-${end - 1}/${bytes.length}`,
      'content-length': end - start
    })
    response.flushHeaders()
  })
  const { torrent, folder } = await fetchFrom([stuck.url])
  await until(() => stuck.requests.length > 0)
  const { address } = await engines.seed(fixture)
  torrent.addPeer(address)
  await torrent.completed()
  await expectFiles(fixture, folder)
})

test('URLs follow BEP 19: every segment encoded, a folder for torrents of several files', () => {
  const layout = new TorrentLayout(fixture.info)
  const file = layout.files.find((entry) => entry.path.startsWith('dir'))!
  expect(webseedUrl('http://h/base', layout, file)).toBe('http://h/base/torrent/dir/%C3%B6%20b%2Bc.bin')
  expect(webseedUrl('http://h/base/', layout, file)).toBe('http://h/base/torrent/dir/%C3%B6%20b%2Bc.bin')
})

test.each([
  [206, { 'content-range': 'bytes 5-9/100' }, 'body'],
  [206, { 'content-range': 'bytes 5-9/*' }, 'body'],
  [206, { 'content-range': 'bytes 5-8/100' }, 'no-file'],
  [206, { 'content-range': 'bytes 5-9/99' }, 'no-file'],
  [206, { 'content-range': 'bytes 5-9/100', 'content-length': '6' }, 'no-file'],
  [206, {}, 'no-file'],
  [200, { 'content-length': '100' }, 'body'],
  [200, {}, 'body'],
  [200, { 'content-length': '99' }, 'no-file'],
  [302, {}, 'no-file'],
  [404, {}, 'no-file'],
  [410, {}, 'no-file'],
  [416, {}, 'no-file'],
  [429, { 'retry-after': '2' }, 'later'],
  [503, {}, 'later']
] as const)('an answer of %i with %j to bytes 5-9 of 100 is judged %s', (status, headers, kind) => {
  expect(judgeRange({ status, headers }, 5, 10, 100, 0).kind).toBe(kind)
})
