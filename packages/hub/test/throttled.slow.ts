// Sources that bear four requests of one address, each with another answer to more, and one that bears all. Times are ratios of downloads
// that run side by side.
import { createHash } from 'node:crypto'
import { forEachLimited } from '@svc/internal-concurrency'
import { type ConnectionLimitOptions, startConnectionLimit } from '@svc/testkit/connection-limit'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { contentChunks } from '@svc/testkit/fake-hub-content'
import { expect, onTestFinished, test } from 'vitest'
import { createHub, createMemorySink, type HubOptions } from '../src/index.ts'

const BEARS = 4
/** So little that a busy machine keeps up with all. */
const RATE = 250_000
/** So large that the first seconds, in which the pace is found, count for little. */
const BIG = { path: 'model.safetensors', content: { seed: 1, sizeBytes: 24_000_000 } }
const SMALL = Array.from({ length: 40 }, (_, n) => ({
  path: `model-${n}.safetensors`,
  content: { seed: 2 + n, sizeBytes: 600_000 }
}))
const FILES = { big: [BIG], small: SMALL }
const BYTES = new Map([BIG, ...SMALL].map(({ path, content }) => [path, Buffer.concat([...contentChunks(content)])]))
const limits = { rangeBytes: 1 << 20 }
/** A client that knows. */
const FOUR = { ...limits, rangesPerFile: BEARS, ranges: BEARS, smallFiles: BEARS }
/** One that asks for all at once. */
const ALL = { ...limits, firstRequests: 24 }

/** How long a client takes for these files, in milliseconds, and what the source saw of it. */
async function timeOf(which: keyof typeof FILES, own: HubOptions['limits'], given: Partial<ConnectionLimitOptions>) {
  const source = await startConnectionLimit({
    bytesPerSecond: RATE,
    contentOf: (path) => BYTES.get(path.slice(1)),
    ...given
  })
  const fake = await startFakeHub({
    repos: [{ id: 'Org/Model', files: FILES[which] }],
    cdnAddress: (path) => `${source.origin}/${path}`
  })
  const hub = createHub({ endpoint: fake.endpoint, limits: own ?? {} })
  onTestFinished(async () => {
    await hub.close()
    await fake.close()
    await source.close()
  })
  const { files } = await hub.listing('Org/Model')
  const began = performance.now()
  await forEachLimited(files, 8, undefined, async (file, signal) => {
    const sink = createMemorySink(file.sizeBytes)
    await hub.download(file, sink, { signal })
    expect(`sha256:${createHash('sha256').update(sink.bytes).digest('hex')}`).toBe(file.sha256)
  })
  return { tookMs: performance.now() - began, source }
}

const KINDS = ['big', 'small'] as const
const WAYS: readonly Partial<ConnectionLimitOptions>[] = [
  { beyond: 'slow' },
  { beyond: '429', retryAfter: 1 },
  { beyond: '503' },
  { beyond: 'reset' }
]

test('from a source that throttles above four requests, files come as fast as with four', async () => {
  const pairs = KINDS.flatMap((which) => WAYS.map((way) => ({ which, way })))
  const rows = await Promise.all(
    pairs.map(async ({ which, way }) => {
      const given = { ...way, bears: BEARS }
      const [known, found] = await Promise.all([timeOf(which, FOUR, given), timeOf(which, limits, given)])
      expect(known.source.mostAtOnce).toBe(BEARS)
      return { row: `${which}, ${way.beyond}`, ratio: found.tookMs / known.tookMs }
    })
  )
  for (const { row, ratio } of rows) expect(ratio, row).toBeLessThan(1.15)
}, 120_000)

test('from a source that bears all, files come as fast as when all is asked for at once', async () => {
  await Promise.all(
    KINDS.map(async (which) => {
      const [all, found] = await Promise.all([timeOf(which, ALL, {}), timeOf(which, limits, {})])
      expect(found.source.mostAtOnce).toBe(all.source.mostAtOnce)
      expect(all.tookMs / found.tookMs, which).toBeGreaterThan(0.95)
    })
  )
}, 120_000)
