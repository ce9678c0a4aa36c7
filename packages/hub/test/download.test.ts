import type { FakeHubFaultRule } from '@svc/testkit/fake-hub-faults'
import { randomFaults, scriptedFaults } from '@svc/testkit/fake-hub-faults'
import type { Dispatcher } from 'undici'
import { expect, test } from 'vitest'
import { HubError } from '../src/index.ts'
import { FATAL, OVERCOME } from './fault-rules.ts'
import { closeAfterTests, createMemorySink, fakeHub, fileOf, hubOf, isRight, quick } from './fixtures.ts'

closeAfterTests()

const KiB = 1024
const weights = { seed: 3, sizeBytes: 1_000_003 }
const repo = {
  id: 'Org/Model',
  files: [
    { path: 'model.gguf', content: weights },
    { path: 'config.json', content: Buffer.from('{"architectures":["X"]}') },
    { path: 'empty.txt', content: new Uint8Array(0) },
    { path: 'dir with space/#1?x=%20+ü.bin', content: { seed: 9, sizeBytes: 50_000 } },
    { path: 'small #?%+ é.txt', content: Buffer.from('odd') }
  ]
}
/** Small ranges: a megabyte is cut like gigabytes are. */
const limits = { rangeBytes: 128 * KiB, writeBytes: 16 * KiB, smallFileBytes: 64 * KiB }

async function setUp(rules: readonly FakeHubFaultRule[] = [], path = 'model.gguf', stallMs = 10_000) {
  const fake = await fakeHub({ repos: [repo] }, rules)
  const hub = hubOf(fake, { limits, retry: { stallMs } })
  const file = await fileOf(hub, 'org/model', path)
  const sink = createMemorySink(file.sizeBytes)
  return { fake, hub, file, sink }
}

test('a large file comes in parallel ranges over one resolved address', async () => {
  const { fake, hub, file, sink } = await setUp()
  const progress: number[] = []
  await hub.download(file, sink, { onProgress: (bytes) => progress.push(bytes) })
  expect(isRight(file, sink)).toBe(true)
  expect(fake.requests.filter((request) => request.stage === 'resolve')).toHaveLength(1)
  expect(fake.requests.filter((request) => request.stage === 'cdn')).toHaveLength(8)
  expect(progress.at(-1)).toBe(file.sizeBytes)
  expect(progress).toEqual([...progress].sort((a, b) => a - b))
})

test.each(repo.files.map((file) => file.path))('%j arrives whole', async (path) => {
  const { hub, file, sink } = await setUp([], path)
  await hub.download(file, sink)
  expect(isRight(file, sink)).toBe(true)
})

test('bytes that the sink holds are not requested again', async () => {
  const { fake, hub, file, sink } = await setUp()
  const right = createMemorySink(file.sizeBytes)
  await hub.download(file, right)
  const before = fake.bytesSent.get('model.gguf') as number
  await sink.write(0, right.bytes.subarray(0, 300_000))
  await sink.write(500_000, right.bytes.subarray(500_000, 900_000))
  await hub.download(file, sink)
  expect(isRight(file, sink)).toBe(true)
  expect((fake.bytesSent.get('model.gguf') as number) - before).toBe(file.sizeBytes - 700_000)
  const asked = fake.requests.length
  await hub.download(file, sink)
  expect(fake.requests).toHaveLength(asked)
})

test.each(OVERCOME)('%s is overcome', async (name, rules) => {
  const { hub, file, sink } = await setUp(rules, 'model.gguf', name.includes('stall') ? 300 : 10_000)
  await hub.download(file, sink)
  expect(isRight(file, sink)).toBe(true)
})

test.each(FATAL)('%s has its code', async (name, rules, code, reason) => {
  const { hub, file, sink } = await setUp(rules, 'model.gguf', name.includes('stall') ? 100 : 10_000)
  const error = await hub.download(file, sink).then(
    () => undefined,
    (thrown: unknown) => thrown
  )
  expect(error).toBeInstanceOf(HubError)
  expect(error).toMatchObject({ code, reason })
})

test('a permanently changed ETag is an error, not a loop', async () => {
  let count = 0
  const { fake, hub, file, sink } = await setUp()
  fake.setFaults((request) => (request.stage === 'cdn' ? { kind: 'etag', value: `"${count++}"` } : undefined))
  await expect(hub.download(file, sink)).rejects.toMatchObject({ code: 'E_SOURCE_UNAVAILABLE' })
})

test('without progress it gives up after six tries, with growing pauses', async () => {
  const { waits, retry } = quick()
  const fake = await fakeHub({ repos: [repo] }, [{ stage: 'resolve', fault: { kind: 'status', status: 500 } }])
  const hub = hubOf(fake, { retry })
  const file = await fileOf(hub, 'Org/Model', 'config.json')
  await expect(hub.download(file, createMemorySink(file.sizeBytes))).rejects.toMatchObject({ details: { status: 500 } })
  expect(fake.requests.filter((request) => request.stage === 'resolve')).toHaveLength(6)
  expect(waits).toEqual([375, 750, 1500, 3000, 6000])
})

test('progress resets the attempts: twenty disconnects do not fail a download', async () => {
  const fake = await fakeHub({ repos: [repo] }, [
    { stage: 'cdn', times: 20, fault: { kind: 'cut', afterBytes: 20_000 } }
  ])
  const hub = hubOf(fake, { limits: { rangesPerFile: 1 } })
  const file = await fileOf(hub, 'Org/Model', 'model.gguf')
  const sink = createMemorySink(file.sizeBytes)
  await hub.download(file, sink)
  expect(isRight(file, sink)).toBe(true)
})

test('a slow source is abandoned although each attempt makes progress, and the hub is asked for another address', async () => {
  const fake = await fakeHub({ repos: [repo] })
  const { waits, retry } = quick()
  const hub = hubOf(fake, { limits: { rangesPerFile: 1 }, retry: { ...retry, slowMs: 1_000, tries: 2 } })
  const file = await fileOf(hub, 'Org/Model', 'model.gguf')
  fake.setFaults(scriptedFaults([{ stage: 'cdn', fault: { kind: 'drip', stepBytes: 1, everyMs: 20 } }]))
  const sink = createMemorySink(file.sizeBytes)
  await expect(hub.download(file, sink)).rejects.toMatchObject({
    code: 'E_SOURCE_UNAVAILABLE',
    reason: 'unreachable',
    cause: { code: 'ERR_SLOW' }
  })
  expect(waits).toHaveLength(1)
  expect(sink.ranges()).toEqual([[0, expect.any(Number)]])
  expect(fake.requests.filter(({ stage }) => stage === 'resolve')).toHaveLength(2)
  // the next one goes on behind what the drip brought
  const [[, held] = [0, 0]] = sink.ranges()
  fake.setFaults(undefined)
  await hub.download(file, sink)
  expect(isRight(file, sink)).toBe(true)
  expect(fake.requests.at(-1)!.headers.range).toBe(`bytes=${held}-${file.sizeBytes - 1}`)
})

test('a signed address that serves only three requests is renewed, and no byte is fetched twice', async () => {
  const fake = await fakeHub({ repos: [repo], signedUses: 3 })
  const hub = hubOf(fake, { limits: { ...limits, rangesPerFile: 1 } })
  const file = await fileOf(hub, 'Org/Model', 'model.gguf')
  const sink = createMemorySink(file.sizeBytes)
  await hub.download(file, sink)
  expect(isRight(file, sink)).toBe(true)
  expect(fake.requests.filter((request) => request.stage === 'resolve')).toHaveLength(3)
  expect(fake.bytesSent.get('model.gguf')).toBe(file.sizeBytes)
})

test("if the sink fails, the download ends with the sink's error", async () => {
  const { hub, file, sink } = await setUp()
  const full = new Error('ENOSPC')
  let writes = 0
  const failing = { ...sink, write: async () => (++writes > 3 ? Promise.reject(full) : undefined) }
  await expect(hub.download(file, failing)).rejects.toBe(full)
})

test('an HTTP client that cannot be loaded from disk is not a fault of the hub, and is not retried', async () => {
  const { file, fake } = await setUp()
  const failure = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' })
  let asked = 0
  const dispatcher = {
    dispatch: () => {
      asked++
      throw failure
    }
  } as unknown as Dispatcher
  const hub = hubOf(fake, { dispatcher })
  await expect(hub.download(file, createMemorySink(file.sizeBytes))).rejects.toBe(failure)
  expect(asked).toBe(1)
})

test('a sink that loses bytes is an error, not an endless download', async () => {
  const { fake, hub, file } = await setUp()
  const forgetful = { sizeBytes: file.sizeBytes, ranges: () => [], write: async () => {}, unmark: () => {} }
  await expect(hub.download(file, forgetful)).rejects.toMatchObject({ code: 'E_INTERNAL', reason: 'sink' })
  expect(fake.bytesSent.get(file.path)).toBe(file.sizeBytes)
})

test('an abort rejects with its reason, and nothing is written afterwards', async () => {
  const { hub, file, sink } = await setUp([{ stage: 'cdn', fault: { kind: 'drip', stepBytes: 10_000, everyMs: 20 } }])
  const stop = new AbortController()
  const reason = new Error('enough')
  const done = hub.download(file, sink, {
    signal: stop.signal,
    onProgress: (bytes) => {
      if (bytes > 20_000) stop.abort(reason)
    }
  })
  await expect(done).rejects.toBe(reason)
  const copy = Buffer.from(sink.bytes)
  // meanwhile another file comes the same way.
  const other = await fileOf(hub, 'org/model', 'config.json')
  await hub.download(other, createMemorySink(other.sizeBytes))
  expect(Buffer.from(sink.bytes).equals(copy)).toBe(true)
})

test('only the hub gets the token', async () => {
  const fake = await fakeHub({ repos: [{ ...repo, private: true }], tokens: ['hf_secret'] })
  const hub = hubOf(fake, { token: 'hf_secret', limits })
  const { files, restricted } = await hub.listing('Org/Model')
  expect(restricted).toBe(true)
  for (const file of files) {
    const sink = createMemorySink(file.sizeBytes)
    await hub.download(file, sink)
    expect(isRight(file, sink)).toBe(true)
  }
  const withToken = fake.requests.filter((request) => request.headers.authorization !== undefined)
  expect(withToken.every((request) => request.origin === 'hub')).toBe(true)
  expect(fake.requests.filter((request) => request.origin === 'hub')).toEqual(withToken)
})

test('a part of a file is read, even from a source without ranges', async () => {
  const { fake, hub, file } = await setUp()
  const whole = createMemorySink(file.sizeBytes)
  await hub.download(file, whole)
  const part = await hub.read(file, { start: 1000, end: 3000 })
  expect(Buffer.from(part).equals(whole.bytes.subarray(1000, 3000))).toBe(true)
  fake.setFaults((request) => (request.stage === 'cdn' ? { kind: 'ignore-range' } : undefined))
  const again = await hub.read(file, { start: 1000, end: 3000 })
  expect(Buffer.from(again).equals(whole.bytes.subarray(1000, 3000))).toBe(true)
  await expect(hub.read(file, { start: 0, end: file.sizeBytes + 1 })).rejects.toThrow(RangeError)
})

test('the probe reports only problems that a request for bytes reveals', async () => {
  const fake = await fakeHub({ repos: [{ ...repo, gated: 'manual' }], tokens: ['in'], outsiderTokens: ['out'] })
  const file = await fileOf(hubOf(fake), 'Org/Model', 'model.gguf')
  await expect(hubOf(fake).probe(file)).rejects.toMatchObject({ code: 'E_SOURCE_FORBIDDEN', reason: 'gated' })
  await expect(hubOf(fake, { token: 'out' }).probe(file)).rejects.toMatchObject({ reason: 'gated' })
  await hubOf(fake, { token: 'in' }).probe(file)
  fake.setFaults(() => ({ kind: 'status', status: 500 }))
  await hubOf(fake).probe(file)
})

test('the probe waits out a rate limit before any request', async () => {
  const fake = await fakeHub({ repos: [repo] })
  const file = await fileOf(hubOf(fake), 'Org/Model', 'model.gguf')
  fake.setFaults(
    scriptedFaults([
      { stage: 'resolve', times: 2, fault: { kind: 'status', status: 429, headers: { 'retry-after': '7' } } }
    ])
  )
  const { waits, retry } = quick()
  const told: string[] = []
  const before = fake.requests.length
  await hubOf(fake, { retry }).probe(file, { onWaiting: ({ reason }) => told.push(reason) })
  expect(waits).toEqual([7000, 7000])
  expect(told).toEqual(['rate-limited', 'rate-limited'])
  expect(fake.requests.length - before).toBe(3)
  fake.setFaults(() => ({ kind: 'status', status: 429, headers: { 'retry-after': '61' } }))
  const impatient = hubOf(fake, { retry }).probe(file, { maxRateWaitMs: 60_000 })
  await expect(impatient).rejects.toMatchObject({ code: 'E_RATE_LIMITED', reason: 'rate-limited' })
})

test.each(Array.from({ length: 25 }, (_, seed) => seed))(
  'random faults (seed %i) give the right bytes or an error',
  async (seed) => {
    const fake = await fakeHub({ repos: [repo], signedUses: 5, faults: randomFaults(seed, 0.3) })
    const hub = hubOf(fake, { limits, retry: { stallMs: 100 } })
    let right = 0
    try {
      const { files } = await hub.listing('Org/Model')
      for (const file of files) {
        const sink = createMemorySink(file.sizeBytes)
        await hub.download(file, sink)
        // flipped bits pass here: they are the hash's to find, and only they may be wrong.
        if (isRight(file, sink)) right++
      }
      expect(right).toBeGreaterThanOrEqual(files.length - 2)
    } catch (error) {
      expect(error).toBeInstanceOf(HubError)
    }
  }
)
