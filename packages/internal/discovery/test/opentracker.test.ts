import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PeerAddress } from '@svc/internal-net'
import { haveOpentracker, type Opentracker, startOpentracker } from '@svc/testkit/opentracker'
import { afterEach, expect, test } from 'vitest'
import { Trackers } from '../src/tracker.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** The first 20 bytes of a v2 infohash: what is announced, and what an allow list holds. */
const ALLOWED = Buffer.alloc(32, 'allowed').subarray(0, 20)
const OTHER = Buffer.alloc(32, 'another').subarray(0, 20)

async function opentracker(): Promise<Opentracker> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-opentracker-'))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  const tracker = await startOpentracker(folder, [ALLOWED.toString('hex')])
  cleanups.push(() => tracker.stop())
  return tracker
}

function announce(url: string, infohash: Uint8Array, port: number): { found: PeerAddress[]; warnings: string[] } {
  const found: PeerAddress[] = []
  const warnings: string[] = []
  const trackers = new Trackers({
    urls: [url],
    infohash,
    peerId: Buffer.alloc(20, port),
    port,
    policy: 'owner',
    stats: () => ({ uploaded: 0, downloaded: 0, left: 1 }),
    found: (peer) => void found.push(peer),
    warn: (message) => void warnings.push(message)
  })
  cleanups.push(() => trackers.close())
  return { found, warnings }
}

// Its list is read by a thread: whom it refuses before that asks again after 15 s
const heard = { timeout: 45_000 }

test.skipIf(!haveOpentracker)('opentracker with an allow list: over HTTP and UDP', { timeout: 120_000 }, async () => {
  const tracker = await opentracker()
  for (const [index, [first, second]] of [
    [tracker.http, tracker.udp],
    [tracker.udp, tracker.http]
  ].entries()) {
    const port = 1_000 + index * 2
    // it names everybody it knows, the asker as well: so its own address tells that it was entered
    const one = announce(first!, ALLOWED, port)
    await expect.poll(() => one.found, heard).toContainEqual({ host: '127.0.0.1', port })
    const two = announce(second!, ALLOWED, port + 1)
    await expect.poll(() => two.found, heard).toContainEqual({ host: '127.0.0.1', port })
  }
})

test.skipIf(!haveOpentracker)('opentracker says that a torrent is not on its list', async () => {
  const { http } = await opentracker()
  const { found, warnings } = announce(http, OTHER, 1_100)
  await expect.poll(() => warnings.length, heard).toBe(1)
  expect(warnings[0]).toContain('not authorized')
  expect(found).toEqual([])
})
