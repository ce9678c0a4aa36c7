import { createHash, randomUUID } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FakeHubFaultRule } from '@svc/testkit/fake-hub-faults'
import { afterEach, expect, test, vi } from 'vitest'
import { HubError, type HubFile, type HubSink } from '../src/index.ts'
import { FATAL, OVERCOME } from './fault-rules.ts'
import { closeAfterTests, createMemorySink, fakeHub, fileOf, hubOf } from './fixtures.ts'

closeAfterTests()

// The same downloads with a sink that worker threads write to.

const KiB = 1024
const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

const weights = { seed: 3, sizeBytes: 1_000_003 }
const repo = { id: 'Org/Model', files: [{ path: 'model.gguf', content: weights }] }
const limits = { rangeBytes: 128 * KiB, writeBytes: 16 * KiB, smallFileBytes: 64 * KiB }

const folder = mkdtempSync(join(tmpdir(), 'svc-hub-direct-'))
const files: number[] = []
afterEach(() => {
  for (const fd of files.splice(0)) closeSync(fd)
})
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

interface DiskSink extends HubSink {
  /** Bytes that came through threads. */
  direct: NonNullable<HubSink['direct']>
  directBytes: number
  bytes(): Buffer
}

function diskSink(sizeBytes: number, flags = 'w+'): DiskSink {
  const path = join(folder, `sink-${randomUUID()}`)
  if (flags !== 'w+') closeSync(openSync(path, 'w'))
  const fd = openSync(path, flags)
  files.push(fd)
  // what is held is kept as a memory sink keeps it; its bytes are the file's.
  const held = createMemorySink(sizeBytes)
  const sink: DiskSink = {
    sizeBytes,
    directBytes: 0,
    ranges: held.ranges,
    unmark: held.unmark,
    write: async (offset, bytes) => {
      writeSync(fd, bytes, 0, bytes.length, offset)
      await held.write(offset, bytes)
    },
    bytes: () => {
      const all = readFileSync(path)
      return all
    },
    direct: {
      fd,
      markWritten: (start, end) => {
        sink.directBytes += end - start
        const bytes = new Uint8Array(end - start)
        readSync(fd, bytes, 0, bytes.length, start)
        void held.write(start, bytes)
      }
    }
  }
  return sink
}

async function setUp(rules: readonly FakeHubFaultRule[] = [], stallMs = 10_000) {
  const fake = await fakeHub({ repos: [repo] }, rules)
  const hub = hubOf(fake, { limits, retry: { stallMs } })
  const file = await fileOf(hub, 'org/model', 'model.gguf')
  return { fake, hub, file, sink: diskSink(file.sizeBytes) }
}

function expectRight(file: HubFile, sink: DiskSink): void {
  const bytes = sink.bytes()
  expect(`sha256:${sha256(bytes).toString('hex')}`).toBe(file.sha256)
}

test("threads write nothing while the sink's gate is closed, and everything afterwards", async () => {
  const { fake, hub, file, sink } = await setUp()
  const writeGate = new Int32Array(new SharedArrayBuffer(4)).fill(1)
  let early = 0
  const markWritten: typeof sink.direct.markWritten = (...written) => {
    early += Atomics.load(writeGate, 0)
    direct.markWritten(...written)
  }
  const { direct } = sink
  sink.direct = { ...direct, writeGate, markWritten }
  // the head of a range has come: its bytes are there, and would be written
  let opening: NodeJS.Timeout | undefined
  const asked = setInterval(() => {
    if (fake.requests.some(({ stage }) => stage === 'cdn') && opening === undefined)
      opening = setTimeout(() => {
        Atomics.store(writeGate, 0, 0)
        Atomics.notify(writeGate, 0)
      }, 200)
  }, 5)
  await hub.download(file, sink).finally(() => clearInterval(asked))
  expect(early).toBe(0)
  expectRight(file, sink)
  expect(sink.directBytes).toBe(file.sizeBytes)
})

test('threads fetch a large file; the hub is asked once, its CDN once per range', async () => {
  const { fake, hub, file, sink } = await setUp()
  const progress: number[] = []
  await hub.download(file, sink, { onProgress: (bytes) => progress.push(bytes) })
  expectRight(file, sink)
  expect(sink.directBytes).toBe(file.sizeBytes)
  expect(fake.requests.filter((request) => request.stage === 'resolve')).toHaveLength(1)
  expect(fake.requests.filter((request) => request.stage === 'cdn')).toHaveLength(8)
  expect(progress.at(-1)).toBe(file.sizeBytes)
  expect(progress).toEqual([...progress].sort((a, b) => a - b))
})

test('a range of several writes is right at any starting offset', async () => {
  const fake = await fakeHub({ repos: [repo] })
  const hub = hubOf(fake, { limits: { ...limits, rangeBytes: 600 * KiB } })
  const file = await fileOf(hub, 'org/model', 'model.gguf')
  const right = createMemorySink(file.sizeBytes)
  await hub.download(file, right)
  const sink = diskSink(file.sizeBytes)
  await sink.write(0, right.bytes.subarray(0, 1_001))
  await hub.download(file, sink)
  expectRight(file, sink)
})

test('bytes that the sink holds are not requested again', async () => {
  const { fake, hub, file, sink } = await setUp()
  const right = createMemorySink(file.sizeBytes)
  await hub.download(file, right)
  const before = fake.bytesSent.get('model.gguf')!
  await sink.write(0, right.bytes.subarray(0, 300_001))
  await sink.write(500_000, right.bytes.subarray(500_000, 900_000))
  await hub.download(file, sink)
  expectRight(file, sink)
  expect(fake.bytesSent.get('model.gguf')! - before).toBe(file.sizeBytes - 700_001)
})

test.each(OVERCOME)('%s is overcome', async (name, rules) => {
  const { hub, file, sink } = await setUp(rules, name.includes('stall') ? 300 : 10_000)
  await hub.download(file, sink)
  expectRight(file, sink)
})

test.each(FATAL)('%s has its code', async (name, rules, code, reason) => {
  const { hub, file, sink } = await setUp(rules, name.includes('stall') ? 100 : 10_000)
  const error = await hub.download(file, sink).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(HubError)
  expect(error).toMatchObject({ code, reason })
})

test('only the hub gets the token', async () => {
  const fake = await fakeHub({ repos: [{ ...repo, private: true }], tokens: ['hf_secret'] })
  const hub = hubOf(fake, { token: 'hf_secret', limits })
  const file = await fileOf(hub, 'Org/Model', 'model.gguf')
  const sink = diskSink(file.sizeBytes)
  await hub.download(file, sink)
  expectRight(file, sink)
  const withToken = fake.requests.filter((request) => request.headers.authorization !== undefined)
  expect(withToken).toEqual(fake.requests.filter((request) => request.origin === 'hub'))
})

test('an abort rejects with its reason, and nothing is written afterwards', async () => {
  // two ranges that last for seconds. Their first writes come within a tenth of one: nothing is reported by then.
  const large = { id: 'Org/Large', files: [{ path: 'model.gguf', content: { seed: 4, sizeBytes: 16 << 20 } }] }
  const drip = { kind: 'drip', stepBytes: 100_000, everyMs: 20 } as const
  const fake = await fakeHub({ repos: [large] }, [{ stage: 'cdn', fault: drip }])
  const hub = hubOf(fake, { limits: { ...limits, rangeBytes: 8 << 20 } })
  const file = await fileOf(hub, 'Org/Large', 'model.gguf')
  const sink = diskSink(file.sizeBytes)
  const stop = new AbortController()
  const reason = new Error('enough')
  const done = hub.download(file, sink, { signal: stop.signal })
  done.catch(() => undefined)
  // what was sent has not arrived for that: what is in the file has.
  await vi.waitFor(() => expect(sink.bytes().length).toBeGreaterThan(0), { timeout: 60_000, interval: 5 })
  stop.abort(reason)
  await expect(done).rejects.toBe(reason)
  const copy = sink.bytes()
  await new Promise((resolve) => setTimeout(resolve, 60))
  expect(sink.bytes().equals(copy)).toBe(true)
  // what had arrived is kept: nothing of it is asked for again.
  const held = sink.ranges().reduce((sum, [start, end]) => sum + end - start, 0)
  expect(held).toBeGreaterThan(0)
  expect(sink.directBytes).toBe(held)
})

test('a file that threads cannot write is written by the sink, which reports the error', async () => {
  const fake = await fakeHub({ repos: [repo] })
  const hub = hubOf(fake, { limits })
  const file = await fileOf(hub, 'Org/Model', 'model.gguf')
  const sink = diskSink(file.sizeBytes, 'r')
  const full = new Error('no space')
  await expect(hub.download(file, { ...sink, write: () => Promise.reject(full) })).rejects.toBe(full)
  expect(sink.directBytes).toBe(0)
})

test("if the sink refuses what was written, the download ends with the sink's error", async () => {
  const { hub, file, sink } = await setUp()
  const closed = new Error('closed')
  const markWritten = (): void => {
    throw closed
  }
  await expect(hub.download(file, { ...sink, direct: { ...sink.direct, markWritten } })).rejects.toBe(closed)
})

/** A CDN that speaks as it is told to: gets the range of each request, and its socket. */
async function rawCdn(answer: (socket: Socket, start: number, end: number, count: number) => void) {
  const sockets = new Set<Socket>()
  let count = 0
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    let held = ''
    socket.on('data', (bytes) => {
      held += bytes.toString('latin1')
      for (let end = held.indexOf('\r\n\r\n'); end >= 0; end = held.indexOf('\r\n\r\n')) {
        const range = /^range: bytes=(\d+)-(\d+)$/im.exec(held.slice(0, end))!
        held = held.slice(end + 4)
        answer(socket, Number(range[1]), Number(range[2]) + 1, ++count)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.2', resolve))
  const { port } = server.address() as { port: number }
  return {
    origin: `http://127.0.0.2:${port}`,
    connections: () => sockets.size,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}

async function withRawCdn(
  answer: (content: Buffer, socket: Socket, start: number, end: number, count: number) => void,
  body: (parts: Awaited<ReturnType<typeof setUp>> & { connections: () => number }) => Promise<void>
): Promise<void> {
  const plain = await setUp()
  const right = createMemorySink(plain.file.sizeBytes)
  await plain.hub.download(plain.file, right)
  const content = Buffer.from(right.bytes)
  const cdn = await rawCdn((socket, start, end, count) => answer(content, socket, start, end, count))
  try {
    const fake = await fakeHub({ repos: [repo], cdnAddress: () => `${cdn.origin}/file` })
    const hub = hubOf(fake, { limits })
    const file = await fileOf(hub, 'org/model', 'model.gguf')
    await body({ fake, hub, file, sink: diskSink(file.sizeBytes), connections: cdn.connections })
  } finally {
    await cdn.close()
  }
}

const headOf = (start: number, end: number, more = ''): string =>
  `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes ${start}-${end - 1}/${weights.sizeBytes}\r\n` +
  `Content-Length: ${end - start}\r\n${more}\r\n`

test.each<[string, (content: Buffer, socket: Socket, start: number, end: number, count: number) => void, boolean]>([
  [
    'head and body byte by byte',
    (content, socket, start, end) => {
      const all = Buffer.concat([Buffer.from(headOf(start, end)), content.subarray(start, end)])
      for (let at = 0; at < 300; at++) socket.write(all.subarray(at, at + 1))
      socket.write(all.subarray(300))
    },
    true
  ],
  [
    'half of each range',
    (content, socket, start, end) => {
      const half = start + Math.ceil((end - start) / 2)
      socket.write(headOf(start, half))
      socket.write(content.subarray(start, half))
    },
    true
  ],
  [
    'a connection that is closed after each answer, with a word',
    (content, socket, start, end) => {
      socket.write(headOf(start, end, 'Connection: close\r\n'))
      socket.end(content.subarray(start, end))
    },
    true
  ],
  [
    'a connection that is closed after each answer, without a word',
    (content, socket, start, end) => {
      socket.write(headOf(start, end))
      socket.end(content.subarray(start, end))
    },
    true
  ],
  [
    'a chunked body',
    (content, socket, start, end) => {
      const head = `HTTP/1.1 206 Partial Content\r\nContent-Range: bytes ${start}-${end - 1}/${weights.sizeBytes}\r\n`
      socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n${(end - start).toString(16)}\r\n`)
      socket.write(content.subarray(start, end))
      socket.write('\r\n0\r\n\r\n')
    },
    false
  ],
  [
    'a header that is repeated',
    (content, socket, start, end) => {
      socket.write(headOf(start, end, 'ETag: "a"\r\nETag: "a"\r\n'))
      socket.write(content.subarray(start, end))
    },
    false
  ]
])('%s: correct, and through threads where the answer is plain enough', async (_, answer, plain) => {
  await withRawCdn(answer, async ({ hub, file, sink }) => {
    await hub.download(file, sink)
    expectRight(file, sink)
    expect(sink.directBytes > 0).toBe(plain)
  })
})

test('bytes after a body are never part of a file', async () => {
  await withRawCdn(
    (content, socket, start, end, count) => {
      socket.write(Buffer.concat([Buffer.from(headOf(start, end)), content.subarray(start, end)]))
      if (count % 3 === 0) socket.write('and more')
    },
    async ({ hub, file, sink }) => {
      await hub.download(file, sink)
      expectRight(file, sink)
    }
  )
})

test('connections are reused', async () => {
  await withRawCdn(
    (content, socket, start, end) => {
      socket.write(headOf(start, end))
      socket.write(content.subarray(start, end))
    },
    async ({ hub, file, sink, connections }) => {
      await hub.download(file, sink)
      sink.unmark(0, file.sizeBytes)
      await hub.download(file, sink)
      expectRight(file, sink)
      expect(connections()).toBeLessThanOrEqual(8)
    }
  )
})
