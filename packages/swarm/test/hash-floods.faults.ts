import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterEach, expect, test } from 'vitest'
import { createFileStorage } from '../src/index.ts'
import { formatHashRange, type HashRange, MESSAGE } from '../src/wire/messages.ts'
import { Engines } from './engines.ts'
import { dialRaw, type RawPeer } from './raw-peer.ts'
import { type Fixture, makeTorrent } from './torrent-fixture.ts'

const PIECE = 16_384 * 64
const LIMIT = 200_000
const SECONDS = 6
const engines = new Engines()
let raws: RawPeer[] = []
let fixture: Fixture
afterEach(async () => {
  for (const raw of raws.splice(0)) raw.socket.destroy()
  await engines.close()
  await fixture.remove()
})

/** Each kind of request, good and bad ones, in turn. */
function requestsOf({ info }: Fixture): Buffer[] {
  const root = info.files[0]!.piecesRoot!
  const of = (range: Partial<HashRange>): Buffer =>
    Buffer.from(
      formatHashRange(MESSAGE.hashRequest, { root, baseLayer: 0, index: 0, length: 512, proofLayers: 0, ...range })
    )
  return [
    of({}),
    // an overlapping request is made anew
    of({ index: 512 }),
    of({ index: 0, length: 64 }),
    of({ index: 0, length: 2, proofLayers: 9 }),
    of({ baseLayer: 6, length: 8, proofLayers: 0 }),
    of({ baseLayer: 6, length: 16, proofLayers: 16 }),
    // and hashes that do not exist
    of({ index: 2 ** 31 }),
    of({ index: 0xffff_ffff - 511 }),
    of({ index: 3, length: 512 }),
    of({ length: 0 }),
    of({ length: 1 }),
    of({ length: 3 }),
    of({ length: 2 ** 31 }),
    of({ proofLayers: 0xffff_ffff }),
    of({ baseLayer: 255 }),
    of({ baseLayer: 0xffff_ffff }),
    of({ root: new Uint8Array(32) })
  ]
}

/** The bytes that a peer was sent, without blocks. */
function answersOf(peer: RawPeer): { answers: number; rejects: number; bytes: number } {
  const answers = peer.received.filter(({ id }) => id === MESSAGE.hashes)
  const rejects = peer.received.filter(({ id }) => id === MESSAGE.hashReject)
  const bytes = [...answers, ...rejects].reduce((sum, { body }) => sum + body.length + 5, 0)
  return { answers: answers.length, rejects: rejects.length, bytes }
}

async function flood(port: number, peers: number): Promise<{ sent: number; seconds: number; worstTurnMs: number }> {
  const dial = (): Promise<RawPeer> => dialRaw(port, fixture, { greet: () => undefined, hashes: () => undefined })
  raws = await Promise.all(Array.from({ length: peers }, dial))
  // a peer that is closed for it comes again
  const connected = [...raws]
  const all = requestsOf(fixture)
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  const begun = performance.now()
  let sent = 0
  while (performance.now() - begun < SECONDS * 1_000) {
    for (const [n, raw] of connected.entries()) {
      if (raw.socket.destroyed) {
        connected[n] = await dial()
        raws.push(connected[n])
        continue
      }
      if (raw.socket.writableLength > 65_536) continue
      raw.send(Buffer.concat(Array.from({ length: 40 }, (_, n) => all[(sent + n) % all.length]!)))
      sent += 40
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  delays.disable()
  return { sent, seconds: (performance.now() - begun) / 1000, worstTurnMs: delays.max / 1e6 }
}

test.each([1, 16])(
  '%d peers that endlessly request hashes stay within the upload limit, and another peer gets its block',
  async (count) => {
    fixture = await makeTorrent({ a: PIECE * 40 + 5 }, PIECE)
    const { swarm } = await engines.seed(fixture, { uploadLimit: LIMIT })
    const { sent, seconds, worstTurnMs } = await flood(swarm.port!, count)
    const totals = raws.map(answersOf)
    const bytes = totals.reduce((sum, each) => sum + each.bytes, 0)
    const [answers, rejects] = [
      totals.reduce((n, each) => n + each.answers, 0),
      totals.reduce((n, each) => n + each.rejects, 0)
    ]
    console.log(
      `${count} peers: ${sent} sent, ${answers} answers, ${rejects} rejects, ${Math.round(bytes / seconds)} B/s of ${LIMIT}, longest turn ${worstTurnMs.toFixed(0)} ms`
    )
    expect(answers).toBeGreaterThan(0)
    // rejects are sent at once and counted; the hashes themselves wait.
    const hashes = bytes - rejects * 53
    expect(hashes).toBeLessThan(LIMIT * (seconds + 1) + 65_536)
    // an honest peer beside them is not starved for ever
    const honest = await dialRaw(swarm.port!, fixture, { greet: () => undefined })
    raws.push(honest)
    honest.send(requestsOf(fixture)[4]!)
    const answer = await honest.next(MESSAGE.hashes)
    expect(
      Buffer.compare(
        answer.subarray(48),
        honest.honestHashes({
          root: fixture.info.files[0]!.piecesRoot!,
          baseLayer: 6,
          index: 0,
          length: 8,
          proofLayers: 0
        })!
      )
    ).toBe(0)
  },
  120_000
)

test('an empty torrent rejects all requests, and is unchanged', async () => {
  fixture = await makeTorrent({ a: PIECE * 40 + 5 }, PIECE)
  const swarm = await engines.open({ uploadLimit: LIMIT })
  const torrent = swarm.add({ info: fixture.info, storage: createFileStorage(await fixture.target('leech')) })
  const { sent, worstTurnMs } = await flood(swarm.port!, 8)
  const totals = raws.map(answersOf)
  console.log(
    `nothing yet: ${sent} sent, ${totals.reduce((n, each) => n + each.rejects, 0)} rejects, longest turn ${worstTurnMs.toFixed(0)} ms`
  )
  expect(totals.reduce((n, each) => n + each.answers, 0)).toBe(0)
  expect(torrent.progress().verifiedBytes).toBe(0)
  expect(torrent.progress().downloadedBytes).toBe(0)
}, 120_000)
