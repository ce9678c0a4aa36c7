import { expect, onTestFinished, test, vi } from 'vitest'
import { createFileStorage, type SwarmTorrent } from '../src/index.ts'
import { Engines } from './engines.ts'
import { makeTorrent } from './torrent-fixture.ts'

test('an upload limit holds within a tenth and is shared by four peers', async () => {
  // The engines' clock goes on with the event loop: what a busy machine takes of it is no time in which nothing is sent.
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const fixture = await makeTorrent({ a: 4_000_000 }, 65_536)
  const engines = new Engines()
  onTestFinished(async () => {
    await engines.close()
    await fixture.remove()
  })
  const limit = 1_000_000
  const { address, swarm, torrent: seeding } = await engines.seed(fixture, { uploadLimit: limit })
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
  /** Nothing is saved up when it resolves. */
  const until = async (holds: () => boolean) => {
    while (!holds() || swarm.uploadBudget!.waitMs(performance.now()) === 0) {
      await new Promise((resolve) => setTimeout(resolve, 5))
      vi.advanceTimersByTime(5)
    }
    return performance.now()
  }
  const got = () => torrents.map((torrent) => torrent.progress().downloadedBytes)
  // All four are there.
  const begun = await until(() => Math.min(...got()) > 0 && sent() > 500_000)
  const [base, before] = [sent(), got()]
  const ended = await until(() => sent() - base >= 3_000_000)
  const rate = (sent() - base) / ((ended - begun) / 1000)
  expect(rate).toBeGreaterThan(limit * 0.9)
  expect(rate).toBeLessThan(limit * 1.1)
  const shares = got().map((bytes, index) => bytes - before[index]!)
  expect(Math.min(...shares)).toBeGreaterThan(Math.max(...shares) * 0.4)
})
