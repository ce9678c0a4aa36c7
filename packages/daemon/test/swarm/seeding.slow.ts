// Limits and numbers of a seed.
import { readdirSync } from 'node:fs'
import type { Sha256Digest } from '@svc/ref'
import { endKeptThreads } from '@svc/testkit/threads'
import { until } from '@svc/testkit/until'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { contentOf, documentsOnly, startWebseed } from './fake-webseed.ts'
import { eventually, MIB, Node, pinned, weights } from './nodes.ts'

/** What a node has sent to peers and from its webseed. */
async function sentBy({ client, running }: Node): Promise<number> {
  const { torrents } = (await client.status()).swarm
  const webseed = running.context.listeners.figures().find(({ listener }) => listener === 'webseed')!
  return torrents.reduce((sum, { uploadedBytes }) => sum + uploadedBytes, webseed.sentBytes)
}

/**
 * The source's time stands still while it sends, and passes while it does not: without a limit all is sent in nearly none.
 * @returns what it sent, and how much of its time that took
 */
async function whilePassing<T>(
  { clock, source }: { readonly clock: VirtualClock; readonly source: Node },
  begin: () => Promise<T>
): Promise<{ result: T; sentBytes: number; seconds: number }> {
  const before = await sentBy(source)
  let isOver = false
  const noteEnd = (): void => void (isOver = true)
  const work = begin()
  work.then(noteEnd, noteEnd)
  let sent = before
  let times = { first: 0, last: 0 }
  const look = async (): Promise<boolean> => {
    const now = await sentBy(source)
    if (now === sent) return false
    const last = clock.monotonic()
    times = { first: sent === before ? last : times.first, last }
    sent = now
    return true
  }
  await until(
    () => isOver,
    async () => {
      if (!(await look())) await clock.advance(40)
    }
  )
  // what was sent since the last look
  await look()
  return { result: await work, sentBytes: sent - before, seconds: (times.last - times.first) / 1000 }
}

test('upload_limit holds', async () => {
  const limit = 2 * MIB
  const clock = new VirtualClock()
  const source = await Node.start({ swarm: { upload_limit: limit }, more: { clock } })
  const share = await source.publish({ 'model-q8_0.gguf': weights(10 * MIB, 10) })
  const { result: content } = await whilePassing({ clock, source }, () => contentOf(share))
  const documents = await startWebseed(content, documentsOnly)
  const node = await Node.start()
  const { result, sentBytes, seconds } = await whilePassing({ clock, source }, () =>
    node.importBt(pinned(share, { webseeds: [documents.url] }))
  )
  expect(result).toMatchObject({ state: 'done' })
  expect(sentBytes).toBeGreaterThan(10 * MIB)
  // half a second's burst may have gathered before
  expect((sentBytes - limit / 2) / seconds).toBeLessThan(limit * 1.15)
})

test('upload_limit holds over the webseed and the peers together', async () => {
  const limit = 2 * MIB
  const clock = new VirtualClock()
  const source = await Node.start({ swarm: { upload_limit: limit }, more: { clock } })
  const share = await source.publish({ 'model-q8_0.gguf': weights(8 * MIB, 11) })
  for (const more of [{ peers: [] }, {}]) {
    const node = await Node.start()
    const begin = () => node.importBt(pinned(share, more))
    const { result, sentBytes, seconds } = await whilePassing({ clock, source }, begin)
    expect(result).toMatchObject({ state: 'done' })
    await node.expectWhole(share.manifestDigest)
    expect(sentBytes).toBeGreaterThan(8 * MIB)
    expect((sentBytes - limit / 2) / seconds).toBeLessThan(limit * 1.15)
  }
})

test('120 artifacts are seeded; closing leaves no socket, timer or descriptor', async () => {
  const files = Object.fromEntries(
    Array.from({ length: 120 }, (_, i) => [`m-q${(i % 9) + 1}_${i}.gguf`, weights(2_000 + i, 100 + i)])
  )
  const folder = temporaryFolder()
  const maker = await Node.start({ folder, swarm: { seed_on_import: false } })
  await maker.importFiles(files)
  await maker.stop()
  const resources = (): number =>
    process.getActiveResourcesInfo().filter((name) => /TCP|UDP|Pipe|Timeout/.test(name)).length
  const descriptors = (): number => readdirSync('/proc/self/fd').length
  await endKeptThreads()
  const quiet = { resources: resources(), descriptors: descriptors() }

  const node = await Node.start({ folder })
  await node.verified()
  const { swarm } = await node.client.status()
  expect(swarm.seeding).toBe(120)
  expect(new Set(swarm.torrents.map(({ infohash }) => infohash)).size).toBe(120)
  const share = await node.share(swarm.torrents[77]!.manifestDigest as Sha256Digest)
  const other = await Node.start()
  expect(await other.importBt(pinned(share))).toMatchObject({ state: 'done' })
  await other.stop()
  await node.stop()
  await endKeptThreads()
  await eventually(() => (resources() <= quiet.resources && descriptors() <= quiet.descriptors ? true : undefined))
})
