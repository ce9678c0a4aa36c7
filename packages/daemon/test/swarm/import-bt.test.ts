import { parseMagnet } from '@svc/metainfo'
import { expect, test } from 'vitest'
import { sharedByFile, testDaemon } from '../support/daemon.ts'
import { Node, refusal } from './nodes.ts'

const PIN = `sha256:${'ab'.repeat(32)}`
const INFOHASH = `btmh:1220${'cd'.repeat(32)}`
const MAGNET = `magnet:?xt=urn:btmh:1220${'cd'.repeat(32)}`
const WEBSEED = 'http://127.0.0.1:9/'
const OF_V1 = `magnet:?xt=urn:btih:${'cd'.repeat(20)}`

const running = sharedByFile((cleanUp) => Node.start({}, cleanUp))

const GOOD = { infohash: INFOHASH, manifestDigest: PIN, webseeds: [WEBSEED] }
const without = (key: keyof typeof GOOD): object =>
  Object.fromEntries(Object.entries(GOOD).filter(([name]) => name !== key))

/** What is wrong, the body, what the message must speak of. */
const BAD: [string, object, RegExp][] = [
  ['magnet and infohash', { ...GOOD, magnet: MAGNET }, /magnet.*infohash/],
  ['neither magnet nor infohash', without('infohash'), /magnet.*infohash/],
  ['no pin', without('manifestDigest'), /manifestDigest/],
  ['a pin in upper case', { ...GOOD, manifestDigest: PIN.toUpperCase() }, /manifestDigest/],
  ['a bare hex pin', { ...GOOD, manifestDigest: PIN.slice(7) }, /manifestDigest/],
  ['a pin that is too short', { ...GOOD, manifestDigest: PIN.slice(0, -1) }, /manifestDigest/],
  ['a pin with blanks around', { ...GOOD, manifestDigest: ` ${PIN}` }, /manifestDigest/],
  ['no webseeds', without('webseeds'), /webseed/],
  ['an empty list of webseeds', { ...GOOD, webseeds: [] }, /webseed/],
  ['a magnet without ws and no webseeds', { magnet: MAGNET, manifestDigest: PIN }, /webseed/],
  ['a magnet with an unusable ws only', { magnet: `${MAGNET}&ws=ftp%3A%2F%2Fhost%2F`, manifestDigest: PIN }, /webseed/],
  ['a webseed that is not an http URL', { ...GOOD, webseeds: ['ftp://host/'] }, /webseeds/],
  ['a webseed that is not a URL', { ...GOOD, webseeds: ['host/path'] }, /webseeds/],
  ['webseeds that are no list', { ...GOOD, webseeds: WEBSEED }, /webseeds/],
  ['a webseed that is not text', { ...GOOD, webseeds: [7] }, /webseeds/],
  ['101 webseeds', { ...GOOD, webseeds: Array.from({ length: 101 }, (_, i) => `${WEBSEED}${i}`) }, /webseeds/],
  ['a tracker of an unknown scheme', { ...GOOD, trackers: ['wss://host/announce'] }, /trackers/],
  ['a peer without a port', { ...GOOD, peers: ['127.0.0.1'] }, /peers/],
  ['a peer with port 0', { ...GOOD, peers: ['127.0.0.1:0'] }, /peers/],
  ['a peer whose host holds a NUL', { ...GOOD, peers: ['a\0b:1'] }, /peers/],
  ['a tracker on port 0', { ...GOOD, trackers: ['udp://tracker.example:0'] }, /trackers/],
  ['a peer with port 65536', { ...GOOD, peers: ['127.0.0.1:65536'] }, /peers/],
  ['an infohash without its prefix', { ...GOOD, infohash: INFOHASH.slice(9) }, /infohash/],
  ['an infohash of v1', { ...GOOD, infohash: `btih:${'cd'.repeat(20)}` }, /infohash/],
  ['an infohash in upper case', { ...GOOD, infohash: INFOHASH.toUpperCase() }, /infohash/],
  ['a magnet of v1 only', { magnet: OF_V1, manifestDigest: PIN, webseeds: [WEBSEED] }, /magnet/],
  ['a magnet that is none', { magnet: 'http://host/', manifestDigest: PIN, webseeds: [WEBSEED] }, /magnet/],
  [
    'a magnet of two torrents',
    { magnet: `${MAGNET}&xt=urn:btmh:1220${'ef'.repeat(32)}`, manifestDigest: PIN, webseeds: [WEBSEED] },
    /magnet/
  ],
  [
    'a magnet of 100,000 characters',
    { magnet: `${MAGNET}&dn=${'x'.repeat(100_000)}`, manifestDigest: PIN, webseeds: [WEBSEED] },
    /magnet/
  ]
]

test.each(BAD)('%s is refused before there is a job', async (_what, body, names) => {
  const { client } = await running()
  const jobs = (await client.jobs()).length
  const { code, status, message } = await refusal(client.importBt(body as never))
  expect({ code, status }).toEqual({ code: 'E_BAD_REQUEST', status: 400 })
  // the message names the field (spec http.7)
  expect(message).toMatch(names)
  expect((await client.jobs()).length).toBe(jobs)
})

test('a good body is a job that waits, with the infohash as its reference; hints of body and magnet are kept together', async () => {
  const { client, running: daemon } = await running()
  const job = await client.importBt({
    magnet: `${MAGNET}&ws=${encodeURIComponent(WEBSEED)}&tr=${encodeURIComponent('http://127.0.0.1:9/announce')}&x.pe=127.0.0.1:10`,
    manifestDigest: PIN,
    peers: ['127.0.0.1:9']
  })
  expect(job).toMatchObject({ kind: 'import-bt', state: 'waiting', ref: INFOHASH, filesTotal: expect.any(Number) })
  const failed = await client.waitJob(job, { intervalMs: 10 })
  expect(failed).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
  // nothing is known of an artifact whose manifest nobody gave
  expect(await daemon.context.artifacts.read(PIN as never)).toBeUndefined()
})

test('with the swarm client off it is not implemented, and the message names the setting', async () => {
  const daemon = await testDaemon()
  const { status, body } = await daemon.post('/v1/import/bt', GOOD)
  expect({ status, code: body.error.code }).toEqual({ status: 501, code: 'E_NOT_IMPLEMENTED' })
  expect(body.error.message).toMatch(/\[swarm\]/)
  expect(body.error.message).toMatch(/enabled/)
})

test('a magnet of this node parses back to the same content', async () => {
  const node = await running()
  const share = await node.publish()
  const magnet = parseMagnet(share.magnet)
  expect(magnet).toMatchObject({ name: share.name, webseeds: share.webseeds, peers: share.peers, trackers: [] })
})
