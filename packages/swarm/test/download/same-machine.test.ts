import { systemClock } from '@svc/internal-clock'
import { HttpClient } from '@svc/internal-http'
import { TorrentLayout } from '@svc/metainfo'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Downloader } from '../../src/download/downloader.ts'
import { PiecePicker } from '../../src/download/picker.ts'
import { PieceHashes } from '../../src/download/piece-hashes.ts'
import { Verifier } from '../../src/download/verifier.ts'
import { Webseed, type WebseedContext } from '../../src/download/webseed.ts'
import { SlotPool } from '../../src/piece/slot-pool.ts'
import { RateMeter } from '../../src/rate-meter.ts'
import { type Fixture, makeTorrent } from '../torrent-fixture.ts'

test('a rate is known before the next tick', () => {
  const meter = new RateMeter(0)
  meter.add(1000)
  expect(meter.recent(50)).toBe(0)
  expect(meter.recent(500)).toBe(2000)
  meter.tick(1000)
  expect(meter.bytesPerSecond).toBe(1000)
  expect(meter.recent(1050)).toBe(1000)
  expect(meter.recent(2000)).toBe(0)
})

let fixture: Fixture
beforeEach(async () => {
  fixture = await makeTorrent({ a: 1_500_000 }, 65_536)
})
afterEach(() => fixture.remove())

test('a webseed rests while a peer on its machine sends enough, and resumes after that', async () => {
  const layout = new TorrentLayout(fixture.info)
  const verifier = new Verifier(1)
  const picker = new PiecePicker(layout.pieceCount, Math.random)
  for (let piece = 0; piece < layout.pieceCount; piece += 1) picker.reopen(piece)
  const downloader = new Downloader({
    env: { clock: systemClock, pool: new SlotPool(4 << 20), verifier },
    layout,
    picker,
    hashes: new PieceHashes(layout),
    progress: { writer: () => Promise.reject(new Error('nothing arrives')) },
    emit: () => undefined
  })
  const http = new HttpClient()
  const asked: string[] = []
  let plenty = true
  const context: WebseedContext = {
    env: { clock: systemClock, nextId: () => 1, http, webseedHeaders: undefined, random: () => 0 },
    layout,
    info: fixture.info,
    downloader,
    farSources: { took: () => undefined, brought: () => undefined },
    hastened: () => [],
    allowance: () => ({ scattered: false, sparing: undefined }),
    isServedBy: (host) => {
      asked.push(host)
      return plenty
    },
    emit: () => undefined
  }
  const webseed = new Webseed(context, 'http://[::1]:9/', new Set(['http://[::1]:9']))
  webseed.pump()
  expect(webseed.active).toBe(false)
  plenty = false
  webseed.pump()
  expect(webseed.active).toBe(true)
  expect(new Set(asked)).toEqual(new Set(['::1']))
  webseed.close()
  await downloader.close()
  await Promise.all([verifier.close(), http.close()])
})
