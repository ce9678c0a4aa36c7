import { createConnection } from 'node:net'
import { join } from 'node:path'
import { createHttpServer } from '@svc/internal-server'
import { until } from '@svc/testkit/until'
import { describe, expect, it } from 'vitest'
import { createLog } from '../../src/log.ts'
import { connected, openBlobs } from '../support/connections.ts'
import { sharedByFile, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'
import { post, rawExchange, request, responsesOf } from '../support/raw.ts'

const SIZE = 1 << 20

const shared = sharedByFile(async (cleanUp) => {
  const api = await testDaemon({}, cleanUp)
  const job = await api.import([writeFiles(join(api.folder, 'model'), { 'm-q8_0.gguf': gguf(SIZE - 24) })])
  const { files } = (await api.open('svc:///me/model:q8_0')).body as { files: { kind?: string; digest: string }[] }
  return { api, digest: files.find(({ kind }) => kind === 'weights.gguf')!.digest, manifest: job.manifest! }
})

describe('pipelined requests', () => {
  it('are answered one at a time, in order; a waiting request holds no descriptor', async () => {
    const { api, digest } = await shared()
    const count = 100
    const socket = await connected(api.socketPath)
    socket.pause()
    const gets = Array.from({ length: count }, (_, i) => request(`/v1/blob/${digest}`, `Range: bytes=${i}-\r\n`))
    socket.write(`${gets.join('')}${request('/v1/nothing', 'Connection: close\r\n')}`)
    await until(() => openBlobs() > 0)
    // the first answer fills the socket's buffer and stays there until somebody reads it
    for (let turn = 0; turn < 20; turn++) {
      expect(openBlobs()).toBe(1)
      await api.get('/v1/status')
    }
    let left = 0
    let pending = Buffer.alloc(0)
    const starts: string[] = []
    let last = ''
    socket.on('data', (chunk: Buffer) => {
      if (left >= chunk.length) return void (left -= chunk.length)
      pending = Buffer.concat([pending, chunk.subarray(left)])
      left = 0
      for (let end = pending.indexOf('\r\n\r\n'); end >= 0; end = pending.indexOf('\r\n\r\n')) {
        last = pending.subarray(0, end + 4).toString('latin1')
        starts.push(/content-range: bytes (\d+)-/i.exec(last)?.[1] ?? last.slice(9, 12))
        const length = Number(/content-length: (\d+)/i.exec(last)![1])
        left = Math.max(0, length - (pending.length - end - 4))
        pending = pending.subarray(Math.min(pending.length, end + 4 + length))
        if (left > 0) return
      }
    })
    socket.resume()
    await new Promise((resolve) => socket.on('close', resolve))
    expect(starts).toEqual([...Array.from({ length: count }, (_, i) => String(i)), '404'])
    expect(last).toMatch(/connection: close/i)
    await until(() => openBlobs() === 0)
  })

  it('start their header time-out once they can be read: a header behind a long response is not late', async () => {
    let answer: (() => void) | undefined
    const limits = { headersTimeoutMs: 300, requestTimeoutMs: 600, connectionsCheckMs: 20 }
    const server = createHttpServer((_request, response) => (answer = () => response.end('ok')), { limits })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const late = new Promise((seen) => server.once('clientError', seen))
    const socket = createConnection({ host: '127.0.0.1', port: (server.address() as { port: number }).port })
    let received = ''
    socket.setEncoding('latin1').on('data', (text: string) => (received += text))
    const closed = new Promise((done) => socket.on('close', done))
    socket.write(`${request('/1')}GET /2 HTTP/1.1\r\nHost:`)
    await until(() => answer !== undefined)
    // Node reports that the second request takes too long
    await late
    const first = answer!
    answer = undefined
    first()
    await until(() => received.includes('ok'))
    socket.write(' x\r\n\r\nGET /3 HTTP/1.1\r\nHost:')
    await until(() => answer !== undefined)
    answer!()
    // the third has its time, but never arrives
    await closed
    expect(responsesOf(received).map(({ status }) => status)).toEqual([200, 200, 408])
    await new Promise((done) => server.close(done))
  })

  it('beside CONNECT release everything when the connection closes', async () => {
    const { api, digest } = await shared()
    const sockets = await Promise.all(Array.from({ length: 100 }, () => connected(api.socketPath)))
    for (const socket of sockets) {
      socket.pause()
      socket.write(`${request(`/v1/blob/${digest}`).repeat(20)}CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n`)
    }
    await until(() => openBlobs() === sockets.length)
    for (const socket of sockets) socket.destroy()
    await until(() => openBlobs() === 0)
  })
})

describe('responses keep the order of their requests', () => {
  it.each([
    ['GET, CONNECT', () => `${request('/v1/jobs')}CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n`, [200, 405]],
    ['POST, junk', () => `${post('/v1/ensure', { ref: 'svc:///a/b:q4' })}junk\r\n\r\n`, [201, 400]],
    ['GET, GET, junk', () => `${request('/v1/status').repeat(2)}\x00\x01\r\n\r\n`, [200, 200, 400]],
    [
      'GET, large headers',
      () => request('/v1/models') + request('/v1/jobs', `A: ${'x'.repeat(20_000)}\r\n`),
      [200, 431]
    ],
    ['GET, no Host', () => `${request('/v1/models')}GET /v1/jobs HTTP/1.1\r\n\r\n`, [200, 400]],
    ['GET, an expectation', () => request('/v1/models') + request('/v1/jobs', 'Expect: tea\r\n'), [200, 417]],
    [
      'a POST whose body breaks',
      () => 'POST /v1/ensure HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"ref\r\nzz\r\n',
      [400]
    ],
    [
      'GET, a POST whose body breaks',
      () =>
        `${request('/v1/status')}POST /v1/ensure HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"ref\r\nzz\r\n`,
      [200, 400]
    ]
  ])('%s', async (_name, bytes, statuses) => {
    const { api } = await shared()
    for (const end of [false, true]) {
      const responses = responsesOf(await rawExchange(api.socketPath, bytes(), { end }))
      expect(responses.map(({ status }) => status)).toEqual(statuses)
      for (const { status, body } of responses) {
        if (status >= 400) expect(typeof JSON.parse(body).error.code).toBe('string')
      }
    }
  })

  it('also after a blob that is read slowly', async () => {
    const { api, digest } = await shared()
    const answer = await rawExchange(api.socketPath, `${request(`/v1/blob/${digest}`)}junk\r\n\r\n`)
    expect(responsesOf(answer).map(({ status, body }) => [status, body.length > 1000])).toEqual([
      [200, true],
      [400, false]
    ])
  })
})

describe('clients that close their sending half', () => {
  it.each([
    ['models', () => request('/v1/models'), 200],
    ['status', () => request('/v1/status'), 200],
    ['open', () => request('/v1/open?ref=svc%3A%2F%2F%2Fme%2Fmodel%3Aq8_0'), 200],
    ['ensure', () => post('/v1/ensure', { ref: 'svc:///me/model:q8_0' }), 201],
    ['HTTP/1.0', () => 'GET /v1/models HTTP/1.0\r\n\r\n', 200]
  ])('get their answer: %s', async (_name, bytes, status) => {
    const { api } = await shared()
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => rawExchange(api.socketPath, bytes(), { end: true }))
    )
    expect(answers.map((answer) => responsesOf(answer).map((each) => each.status))).toEqual(
      Array.from({ length: 20 }, () => [status])
    )
  })

  it('get 400 for half a request, and nothing without a request', async () => {
    const { api } = await shared()
    const half = await rawExchange(api.socketPath, 'GET /v1/jobs HTTP/1.1\r\nHo', { end: true })
    expect(responsesOf(half).map(({ status }) => status)).toEqual([400])
    expect(await rawExchange(api.socketPath, '\r\n', { end: true })).toBe('')
  })
})

describe('clients that leave or are slow', () => {
  const logged = (): {
    readonly lines: { level: string; msg: string }[]
    readonly log: ReturnType<typeof createLog>
  } => {
    const lines: { level: string; msg: string }[] = []
    return { lines, log: createLog('debug', 'json', { write: (line: string) => void lines.push(JSON.parse(line)) }) }
  }

  it('in the middle of a body are not a failure of the daemon', async () => {
    const { lines, log } = logged()
    const api = await testDaemon({ log })
    lines.length = 0
    for (let i = 0; i < 5; i++) {
      const socket = await connected(api.socketPath)
      socket.write('POST /v1/ensure HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"ref":')
      await api.get('/v1/jobs')
      socket.destroy()
    }
    await until(() => lines.filter(({ msg }) => msg.startsWith('the client disconnected')).length === 5)
    expect(lines.filter(({ level }) => level === 'error' || level === 'warn')).toEqual([])
  })
})
