import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Client, ClientError, createClient } from '../src/index.ts'

// A real HTTP server on a Unix socket that answers as the protocol says, or breaks it where a test asks for that.
type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void

const folder = mkdtempSync(join(tmpdir(), 'svc-client-'))
const socketPath = join(folder, 's.sock')
let handler: Handler
let server: Server
let client: Client

function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
const job = (state: string, more: object = {}) => ({
  id: 'abc',
  kind: 'ensure',
  ref: 'r',
  state,
  createdAt: '2026-01-01T00:00:00.000Z',
  ...more
})

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => handler(request, response, body))
  })
  await new Promise<void>((done) => server.listen(socketPath, done))
})
beforeEach(() => {
  client?.close()
  client = createClient({ socketPath })
})
afterAll(async () => {
  client.close()
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
  rmSync(folder, { recursive: true, force: true })
})

const failure = (work: Promise<unknown>): Promise<ClientError> =>
  work.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => error as ClientError
  )

describe('calls', () => {
  it('encodes references in the query, including the plus sign', async () => {
    handler = (request, response) => json(response, 200, { url: request.url })
    const got = (await client.resolve('svc:///a/b:t+q8_0')) as unknown as { url: string }
    expect(new URL(got.url, 'http://svc').searchParams.get('ref')).toBe('svc:///a/b:t+q8_0')
    // the short form, as people write it
    for (const call of [client.resolve, client.open]) {
      const { url } = (await call('a/b:q8_0')) as unknown as { url: string }
      expect(new URL(url, 'http://svc').searchParams.get('ref')).toBe('svc:///a/b:q8_0')
    }
    expect(got.url).toContain('%2B')
  })

  it('posts bodies as JSON', async () => {
    handler = (request, response, body) => json(response, 201, { url: request.url, body: JSON.parse(body) })
    expect(await client.importLocal({ paths: ['/x'], as: 'a/b' })).toEqual({
      url: '/v1/import/local',
      body: { paths: ['/x'], as: 'a/b' }
    })
  })

  it('turns the envelope into an error with code, status and candidates', async () => {
    handler = (_request, response) =>
      json(response, 400, { error: { code: 'E_AMBIGUOUS_SELECTOR', message: 'm', candidates: ['q4_0', 'q4_1'] } })
    const error = await failure(client.open('svc:///a/b:q4'))
    expect(error).toBeInstanceOf(ClientError)
    expect(error).toMatchObject({
      code: 'E_AMBIGUOUS_SELECTOR',
      status: 400,
      candidates: ['q4_0', 'q4_1'],
      message: 'm'
    })
  })

  it.each([
    ['not JSON', '<html>'],
    ['no object', '[]']
  ])('an answer that is %s is E_BAD_RESPONSE', async (_title, text) => {
    handler = (_request, response) => void response.end(text)
    expect(await failure(client.models())).toMatchObject({ code: 'E_BAD_RESPONSE' })
  })

  it('a missing socket, one without a listener, and a daemon that disconnects are E_UNREACHABLE', async () => {
    const absent = createClient({ socketPath: join(folder, 'none.sock') })
    expect(await failure(absent.models())).toMatchObject({ code: 'E_UNREACHABLE' })
    handler = (request) => void request.socket.destroy()
    expect(await failure(client.verify({ target: 'all' }))).toMatchObject({ code: 'E_UNREACHABLE' })
  })

  it('silence is E_NO_ANSWER after the time-out', async () => {
    handler = () => {}
    const hasty = createClient({ socketPath, timeoutMs: 50 })
    expect(await failure(hasty.models())).toMatchObject({ code: 'E_NO_ANSWER' })
    hasty.close()
  })

  it('what copies or removes folders has no time-out', async () => {
    const release = Promise.withResolvers<void>()
    handler = async (_request, response) => {
      await release.promise
      json(response, 200, { path: '/tool', removed: true })
    }
    const hasty = createClient({ socketPath, timeoutMs: 20 })
    const calls = [
      hasty.addStandingView({ layout: 'llama', path: '/tool', copy: true }),
      hasty.removeStandingView({ path: '/tool' })
    ]
    expect(await failure(hasty.models())).toMatchObject({ code: 'E_NO_ANSWER' })
    release.resolve()
    for (const answer of await Promise.all(calls)) expect(answer).toMatchObject({ path: '/tool' })
    hasty.close()
  })

  it("rejects with the signal's own reason, before and during a call", async () => {
    const reason = new Error('enough')
    expect(await failure(client.models({ signal: AbortSignal.abort(reason) }))).toBe(reason)
    const stop = new AbortController()
    handler = () => stop.abort(reason)
    expect(await failure(client.models({ signal: stop.signal }))).toBe(reason)
  })

  it('retries a GET on a kept connection that the daemon closed, but never a POST', async () => {
    let gets = 0
    handler = (request, response) => {
      gets++
      if (gets === 2) request.socket.destroy()
      else json(response, 200, { n: gets })
    }
    await client.models()
    expect(await client.models()).toEqual({ n: 3 })
    let posts = 0
    handler = (request) => {
      posts++
      request.socket.destroy()
    }
    await failure(client.ensure({ ref: 'r' }))
    expect(posts).toBe(1)
  })
})

describe('watching', () => {
  it('yields snapshots until the job ends', async () => {
    const states = ['waiting', 'fetching', 'fetching', 'done']
    handler = (_request, response) => json(response, 200, job(states.shift()!))
    const seen: string[] = []
    for await (const { state } of client.watchJob('abc', { intervalMs: 1 })) seen.push(state)
    expect(seen).toEqual(['waiting', 'fetching', 'fetching', 'done'])
  })

  it('does not poll a finished job, and returns a failed one', async () => {
    handler = (_request, response) => json(response, 500, {})
    const failed = job('failed', { error: { code: 'E_UNKNOWN_REF', message: 'm' } })
    expect(await client.waitJob(failed as never)).toEqual(failed)
  })

  it('ends on abort with the reason', async () => {
    handler = (_request, response) => json(response, 200, job('fetching'))
    const stop = new AbortController()
    const reason = new Error('enough')
    const waiting = client.waitJob('abc', { signal: stop.signal, intervalMs: 60_000 })
    stop.abort(reason)
    expect(await failure(waiting)).toBe(reason)
  })
})

describe('blobs', () => {
  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => i % 251))
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  const serve: Handler = (request, response) => {
    const match = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    if (match === null) {
      response.writeHead(200, { 'content-length': bytes.length }).end(request.method === 'HEAD' ? undefined : bytes)
      return
    }
    const start = Number(match[1])
    const end = Math.min(match[2] === '' ? bytes.length : Number(match[2]) + 1, bytes.length)
    if (start >= bytes.length) return json(response, 416, { error: { code: 'E_RANGE_INVALID', message: 'm' } })
    const part = bytes.subarray(start, end)
    const headers = { 'content-range': `bytes ${start}-${end - 1}/${bytes.length}`, 'content-length': part.length }
    response.writeHead(206, headers).end(part)
  }
  const read = async (slice?: { start?: number; end?: number }): Promise<Buffer> =>
    Buffer.concat((await (await client.readBlob(digest, slice)).body.toArray()) as Buffer[])

  it('reads whole blobs, and slices with a clamped exclusive end', async () => {
    handler = serve
    expect((await read()).equals(bytes)).toBe(true)
    expect((await read({ start: 0, end: 1 })).equals(bytes.subarray(0, 1))).toBe(true)
    expect((await read({ start: 69_990 })).equals(bytes.subarray(69_990))).toBe(true)
    expect((await read({ start: 60_000, end: 1e9 })).equals(bytes.subarray(60_000))).toBe(true)
    expect(await client.headBlob(digest)).toEqual({ sizeBytes: bytes.length })
    expect(
      await client.readBlob(digest, { start: 5, end: 9 }).then(({ body, ...info }) => (body.destroy(), info))
    ).toEqual({
      sizeBytes: bytes.length,
      start: 5,
      end: 9
    })
  })

  it('refuses invalid slices, in the client and at the daemon', async () => {
    handler = serve
    for (const slice of [{ start: 5, end: 5 }, { start: -1 }, { start: 0.5 }, { start: 70_000 }]) {
      expect(await failure(client.readBlob(digest, slice))).toMatchObject({ code: 'E_RANGE_INVALID' })
    }
  })

  it('a truncated body is E_SHORT_BODY', async () => {
    handler = (_request, response) => {
      response
        .writeHead(200, { 'content-length': bytes.length })
        .write(bytes.subarray(0, 1000), () => response.destroy())
    }
    expect(await failure(read())).toMatchObject({ code: 'E_SHORT_BODY' })
  })

  it('a range other than the requested one is E_BAD_RESPONSE', async () => {
    handler = (_request, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-9/100', 'content-length': 10 }).end(Buffer.alloc(10))
    }
    expect(await failure(client.readBlob(digest, { start: 1, end: 11 }))).toMatchObject({ code: 'E_BAD_RESPONSE' })
    expect(await failure(client.readBlob(digest))).toMatchObject({ code: 'E_BAD_RESPONSE' })
  })

  it.each([undefined, 'bytes 0-9/*', 'bytes 0-9/9', '0-9/100'])(
    'a part that says %s is E_BAD_RESPONSE',
    async (said) => {
      handler = (_request, response) => {
        const headers = { 'content-length': 10, ...(said !== undefined && { 'content-range': said }) }
        response.writeHead(206, headers).end(Buffer.alloc(10))
      }
      expect(await failure(client.readBlob(digest, { start: 0, end: 10 }))).toMatchObject({ code: 'E_BAD_RESPONSE' })
    }
  )

  it('an unknown blob is E_NOT_FOUND, by GET and by HEAD', async () => {
    handler = (request, response) => {
      if (request.method === 'HEAD') response.writeHead(404).end()
      else json(response, 404, { error: { code: 'E_NOT_FOUND', message: 'm' } })
    }
    expect(await failure(client.readBlob(digest))).toMatchObject({ code: 'E_NOT_FOUND', status: 404 })
    expect(await failure(client.headBlob(digest))).toMatchObject({ code: 'E_NOT_FOUND', status: 404 })
  })
})
