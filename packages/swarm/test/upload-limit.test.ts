import { TokenBucket } from '@svc/internal-net'
import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, onTestFinished, test } from 'vitest'
import { createFileStorage, type SwarmTorrent } from '../src/index.ts'
import { Engines } from './engines.ts'
import { makeTorrent } from './torrent-fixture.ts'

test('blocks count as they arrive, long before their piece is whole', async () => {
  const clock = new VirtualClock()
  const sizeBytes = 700_001
  const fixture = await makeTorrent({ a: sizeBytes }, 1 << 20)
  const engines = new Engines()
  onTestFinished(async () => {
    await engines.close()
    await fixture.remove()
  })
  const uploadLimit = new TokenBucket(250_000, clock.monotonic())
  const { address } = await engines.seed(fixture, { uploadLimit, clock })
  const torrent = (await engines.open()).add({
    info: fixture.info,
    storage: createFileStorage(await fixture.target('l')),
    peers: [address]
  })
  const seen: number[] = []
  let isOver = false
  void torrent.completed().then(() => (isOver = true))
  await until(
    () => isOver,
    async () => {
      const { verifiedBytes, unverifiedBytes } = torrent.progress()
      expect(verifiedBytes === 0 || unverifiedBytes === 0).toBe(true)
      if (verifiedBytes === 0) seen.push(unverifiedBytes)
      await clock.advance(50)
    }
  )
  expect(seen).toEqual([...seen].sort((a, b) => a - b))
  expect(new Set(seen).size).toBeGreaterThan(3)
  expect(seen.at(-1)).toBeLessThanOrEqual(sizeBytes)
  expect(torrent.progress()).toMatchObject({ verifiedBytes: sizeBytes, unverifiedBytes: 0 })
})

test('an upload limit holds within a tenth and is shared by four peers', async () => {
  // its time passes with the event loop: when a busy machine holds that up, no time passes in which nothing is sent.
  const clock = new VirtualClock()
  const fixture = await makeTorrent({ a: 4_000_000 }, 65_536)
  const engines = new Engines()
  onTestFinished(async () => {
    await engines.close()
    await fixture.remove()
  })
  const limit = 1_000_000
  const uploadLimit = new TokenBucket(limit, clock.monotonic())
  const { address, torrent: seeding } = await engines.seed(fixture, { uploadLimit, clock })
  const torrents: SwarmTorrent[] = []
  for (let index = 0; index < 4; index += 1) {
    const leech = await engines.open({ pex: false })
    torrents.push(
      leech.add({
        info: fixture.info,
        pieceLayers: fixture.layers,
        storage: createFileStorage(await fixture.target(`l${index}`)),
        peers: [address],
        upload: false
      })
    )
  }
  const sent = () => seeding.progress().uploadedBytes
  /** When it resolves, no allowance is saved up. */
  const passed = async (holds: () => boolean) => {
    const isSpent = (): boolean => uploadLimit.waitMs(clock.monotonic()) > 0
    await until(
      () => holds() && isSpent(),
      () => clock.advance(20)
    )
    return clock.monotonic()
  }
  const got = () => torrents.map((torrent) => torrent.progress().downloadedBytes)
  // all four are downloading.
  const begun = await passed(() => Math.min(...got()) > 0 && sent() > 500_000)
  const [base, before] = [sent(), got()]
  const ended = await passed(() => sent() - base >= 3_000_000)
  const rate = (sent() - base) / ((ended - begun) / 1000)
  expect(rate).toBeGreaterThan(limit * 0.9)
  expect(rate).toBeLessThan(limit * 1.1)
  const shares = got().map((bytes, index) => bytes - before[index]!)
  expect(Math.min(...shares)).toBeGreaterThan(Math.max(...shares) * 0.4)
})
