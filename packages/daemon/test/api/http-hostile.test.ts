import { createConnection } from 'node:net'
import { ROUTES, type Route } from '@svc/client/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sharedByFile, testDaemon } from '../support/daemon.ts'
import { envelopeOf, rawExchange } from '../support/raw.ts'

const shared = sharedByFile((cleanUp) => testDaemon({}, cleanUp))

const CLOSE = 'Host: x\r\nConnection: close\r\n\r\n'

describe('malformed requests', () => {
  it.each([
    ['garbage', 'hello\r\n\r\n', 400, 'E_BAD_REQUEST'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'E_BAD_REQUEST'],
    ['HTTP/0.9', 'GET /v1/jobs\r\n\r\n', 400, 'E_BAD_REQUEST'],
    ['HTTP/0.9 with a version', 'GET /v1/jobs HTTP/0.9\r\n\r\n', 400, 'E_BAD_REQUEST'],
    ['HTTP/2 preface', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'E_BAD_REQUEST'],
    ['no Host', 'GET /v1/jobs HTTP/1.1\r\n\r\n', 400, 'E_BAD_REQUEST'],
    ['two Hosts', `GET /v1/jobs HTTP/1.1\r\nHost: a\r\n${CLOSE}`, 400, 'E_BAD_REQUEST'],
    ['absolute form', `GET http://x/v1/jobs HTTP/1.1\r\n${CLOSE}`, 400, 'E_BAD_REQUEST'],
    ['asterisk form', `OPTIONS * HTTP/1.1\r\n${CLOSE}`, 400, 'E_BAD_REQUEST'],
    ['CONNECT', `CONNECT x:80 HTTP/1.1\r\n${CLOSE}`, 405, 'E_METHOD_NOT_ALLOWED'],
    ['an expectation', `GET /v1/jobs HTTP/1.1\r\nExpect: tea\r\n${CLOSE}`, 417, 'E_BAD_REQUEST'],
    ['space in a header name', `GET /v1/jobs HTTP/1.1\r\nA b: c\r\n${CLOSE}`, 400, 'E_BAD_REQUEST'],
    [
      'two lengths',
      `POST /v1/ensure HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n${CLOSE}{}`,
      400,
      'E_BAD_REQUEST'
    ],
    [
      'length and chunked',
      `POST /v1/ensure HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n${CLOSE}{}`,
      400,
      'E_BAD_REQUEST'
    ],
    ['bad chunk', `POST /v1/ensure HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${CLOSE}zz\r\n`, 400, 'E_BAD_REQUEST'],
    ['large headers', `GET /v1/jobs HTTP/1.1\r\nA: ${'x'.repeat(20_000)}\r\n${CLOSE}`, 431, 'E_HEADERS_TOO_LARGE'],
    ['large target', `GET /v1/${'x'.repeat(20_000)} HTTP/1.1\r\n${CLOSE}`, 431, 'E_HEADERS_TOO_LARGE'],
    [
      'body over the limit, announced',
      `POST /v1/ensure HTTP/1.1\r\nContent-Length: 1048577\r\n${CLOSE}`,
      413,
      'E_TOO_LARGE'
    ],
    ['bad percent', `GET /v1/blob/%zz HTTP/1.1\r\n${CLOSE}`, 400, 'E_BAD_REQUEST'],
    ['bad UTF-8 in a target', `GET /v1/blob/%ff%fe HTTP/1.1\r\n${CLOSE}`, 400, 'E_BAD_REQUEST'],
    ['an encoded letter in the path', `GET /v1/%72esolve?ref=x HTTP/1.1\r\n${CLOSE}`, 404, 'E_NOT_FOUND'],
    ['an encoded slash in the path', `GET /v1%2fjobs HTTP/1.1\r\n${CLOSE}`, 404, 'E_NOT_FOUND'],
    ['dot segments', `GET /v1/x/../jobs HTTP/1.1\r\n${CLOSE}`, 404, 'E_NOT_FOUND'],
    ['doubled slash', `GET //v1/jobs HTTP/1.1\r\n${CLOSE}`, 404, 'E_NOT_FOUND'],
    ['trailing slash', `GET /v1/jobs/ HTTP/1.1\r\n${CLOSE}`, 404, 'E_NOT_FOUND'],
    ['upper case', `GET /V1/JOBS HTTP/1.1\r\n${CLOSE}`, 404, 'E_NOT_FOUND'],
    ['a path out of the store', `GET /v1/blob/..%2f..%2fstate HTTP/1.1\r\n${CLOSE}`, 400, 'E_BAD_REQUEST'],
    ['root', `GET / HTTP/1.1\r\n${CLOSE}`, 404, 'E_NOT_FOUND'],
    ['an unknown method', `BREW /v1/jobs HTTP/1.1\r\n${CLOSE}`, 400, 'E_BAD_REQUEST'],
    ['a method that no route has', `QUERY /v1/jobs HTTP/1.1\r\n${CLOSE}`, 405, 'E_METHOD_NOT_ALLOWED'],
    ['a name that is empty', `GET /v1/blob/ HTTP/1.1\r\n${CLOSE}`, 404, 'E_NOT_FOUND'],
    [
      'a Content-Type without a value, which is none',
      `POST /v1/ensure HTTP/1.1\r\nContent-Type: \r\nContent-Length: 2\r\n${CLOSE}{}`,
      400,
      'E_BAD_REQUEST'
    ]
  ])('%s', async (_name, bytes, status, code) => {
    const { socketPath } = await shared()
    const answer = envelopeOf(await rawExchange(socketPath, bytes, { end: bytes.startsWith('\x16') }))
    expect({ status: answer.status, code: answer.code }).toEqual({ status, code })
    expect(answer.headers.toLowerCase()).toContain('content-type: application/json')
  })

  // each hides a second request that another parser would take for a body, or for no body
  it.each([
    ['a space before the colon', 'Transfer-Encoding : chunked', '0\r\n\r\n'],
    ['a coding that is not the last one', 'Transfer-Encoding: chunked, identity', '0\r\n\r\n'],
    ['an unknown coding', 'Transfer-Encoding: xchunked', '0\r\n\r\n'],
    ['two codings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity', '0\r\n\r\n'],
    ['length and coding', 'Content-Length: 5\r\nTransfer-Encoding: chunked', '0\r\n\r\n'],
    ['two lengths', 'Content-Length: 0\r\nContent-Length: 40', ''],
    ['a list of lengths', 'Content-Length: 0, 40', ''],
    ['a length with a sign', 'Content-Length: +5', 'abcde'],
    ['a length in hex', 'Content-Length: 0x5', 'abcde'],
    ['a folded header', 'Transfer-Encoding:\r\n chunked', '0\r\n\r\n'],
    ['a bare line feed', 'A: b\nTransfer-Encoding: chunked', '0\r\n\r\n'],
    ['a bare carriage return', 'A: b\rTransfer-Encoding: chunked', '0\r\n\r\n'],
    ['a NUL in a header', 'A: b\0', ''],
    ['a chunk size beyond any number', 'Transfer-Encoding: chunked', 'ffffffffffffffffff\r\nx\r\n0\r\n\r\n'],
    ['a chunk size with a sign', 'Transfer-Encoding: chunked', '+0\r\n\r\n'],
    ['a chunk that is longer than it says', 'Transfer-Encoding: chunked', '1\r\nab\r\n0\r\n\r\n'],
    ['a line feed in a chunk extension', 'Transfer-Encoding: chunked', '1;a=\n\r\nb\r\n0\r\n\r\n']
  ])('prevents request smuggling by %s', async (_name, header, body) => {
    const { socketPath } = await shared()
    const hidden = 'GET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n'
    const answer = await rawExchange(
      socketPath,
      `POST /v1/ensure HTTP/1.1\r\nHost: x\r\n${header}\r\n\r\n${body}${hidden}`,
      { end: true }
    )
    expect(envelopeOf(answer)).toMatchObject({ status: 400, code: 'E_BAD_REQUEST' })
    expect(answer).not.toContain('smuggled')
    expect(answer.match(/HTTP\/1\.1 /g)).toHaveLength(1)
  })

  it('answers 408 when a header or a body does not arrive', async () => {
    const { socketPath } = await testDaemon({
      http: { limits: { headersTimeoutMs: 100, requestTimeoutMs: 200, connectionsCheckMs: 50 } }
    })
    expect(envelopeOf(await rawExchange(socketPath, 'GET /v1/jobs HTTP/1.1\r\nHo'))).toMatchObject({
      status: 408,
      code: 'E_TIMEOUT'
    })
    const slow = 'POST /v1/ensure HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{'
    expect(envelopeOf(await rawExchange(socketPath, slow))).toMatchObject({ status: 408, code: 'E_TIMEOUT' })
  })

  it('supports Expect: 100-continue', async () => {
    const { socketPath } = await shared()
    const answer = await rawExchange(
      socketPath,
      `POST /v1/ensure HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n${CLOSE}{}`
    )
    expect(answer).toMatch(/^HTTP\/1\.1 100 /)
    expect(envelopeOf(answer)).toMatchObject({ status: 400, code: 'E_BAD_REQUEST' })
  })

  it('reads the body before it answers 404, so that the client sees the answer', async () => {
    const head = `POST /v1/nothing HTTP/1.1\r\nContent-Length: 100000\r\n${CLOSE}`
    const { socketPath } = await shared()
    expect(envelopeOf(await rawExchange(socketPath, head + 'x'.repeat(100_000)))).toMatchObject({ status: 404 })
    expect(envelopeOf(await rawExchange(socketPath, `${head}x`, { end: true }))).toMatchObject({ status: 400 })
    const large = head.replace('100000', `${2 << 20}`)
    expect(envelopeOf(await rawExchange(socketPath, large))).toMatchObject({ status: 413, code: 'E_TOO_LARGE' })
  })

  it('answers 413 to a chunked body over the limit', async () => {
    const api = await shared()
    const chunk = 'x'.repeat(65_536)
    const body = `${`10000\r\n${chunk}\r\n`.repeat(17)}0\r\n\r\n`
    const answer = await rawExchange(
      api.socketPath,
      `POST /v1/ensure HTTP/1.1\r\nTransfer-Encoding: chunked\r\n${CLOSE}${body}`
    )
    expect(envelopeOf(answer)).toMatchObject({ status: 413, code: 'E_TOO_LARGE' })
  })

  it('survives any input, and continues to respond', async () => {
    const api = await shared()
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...(Object.values(ROUTES) as Route[])),
        fc.uint8Array({ maxLength: 200 }),
        fc.string(),
        async (route, bytes, text) => {
          const path = route.path.replace(/\{\w+\}/, encodeURIComponent(text) || 'x')
          const answer = await api.call(
            route.method,
            `${path}?ref=${encodeURIComponent(text)}`,
            route.method === 'POST' ? { raw: Buffer.from(bytes) } : {}
          )
          expect(answer.status).toBeLessThan(600)
          if (answer.status >= 400 && route.method !== 'HEAD') expect(typeof answer.body.error.code).toBe('string')
        }
      ),
      { numRuns: 150 }
    )
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
        await rawExchange(api.socketPath, Buffer.from(bytes), { end: true })
      }),
      { numRuns: 50 }
    )
    expect((await api.get('/v1/jobs')).status).toBe(200)
  })

  it('refuses connections beyond the bound and takes new ones afterwards', async () => {
    const api = await testDaemon({ http: { limits: { maxConnections: 4 } } })
    const sockets = await Promise.all(
      Array.from({ length: 12 }, () => {
        const socket = createConnection({ path: api.socketPath })
        socket.on('error', () => undefined)
        return new Promise<typeof socket>((resolve) => socket.once('connect', () => resolve(socket)))
      })
    )
    for (const socket of sockets) socket.destroy()
    await Promise.all(
      sockets.map((socket) => (socket.closed ? undefined : new Promise((resolve) => socket.once('close', resolve))))
    )
    let status = 0
    while (status !== 200)
      status = await api.get('/v1/jobs').then(
        (answer) => answer.status,
        () => 0
      )
    expect(status).toBe(200)
  })
})

describe('bodies', () => {
  it.each([
    ['no body', undefined],
    ['empty', ''],
    ['not JSON', '{'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a string', '"x"'],
    ['not UTF-8', Buffer.from([0x7b, 0xff, 0x7d])],
    ['a byte order mark', '\ufeff{}'],
    ['nested too deep', `{"ref":${'['.repeat(40)}${']'.repeat(40)}}`],
    ['a million brackets', '['.repeat(1_000_000)],
    ['missing field', '{}'],
    ['wrong type', '{"ref":1}'],
    ['null field', '{"ref":null}'],
    ['the field in the prototype', '{"__proto__":{"ref":"svc:///a/b:q4"}}']
  ])('%s is E_BAD_REQUEST', async (_name, raw) => {
    const api = await shared()
    const answer = await api.call('POST', '/v1/ensure', raw === undefined ? {} : { raw })
    expect({ status: answer.status, code: answer.body.error.code }).toEqual({ status: 400, code: 'E_BAD_REQUEST' })
  })

  it('names the field', async () => {
    const api = await shared()
    expect((await api.post('/v1/ensure', { ref: 1 })).body.error.message).toContain('"ref"')
    expect((await api.post('/v1/import/local', { paths: [1], as: 'a/b' })).body.error.message).toContain('paths.0')
    expect((await api.post('/v1/import/local', { paths: ['/x'] })).body.error.message).toContain('"as"')
  })

  it('ignores unknown fields, and brackets within strings', async () => {
    const api = await shared()
    const { status, body } = await api.post('/v1/ensure', {
      ref: `svc:///a/${'['.repeat(50)}`,
      more: 1,
      constructor: 2
    })
    expect(status).toBe(201)
    expect(body.error.code).toBe('E_PARSE')
  })

  it('accepts a body of exactly 1 MiB, whatever its Content-Type', async () => {
    const api = await shared()
    const raw = `{"ref":"${'x'.repeat(1_048_576 - 10)}"}`
    expect(raw.length).toBe(1_048_576)
    const answer = await api.call('POST', '/v1/ensure', { raw, headers: { 'Content-Type': 'image/png; charset=;;' } })
    expect(answer.status).toBe(201)
    expect(answer.body.error.code).toBe('E_LENGTH')
  })
})

describe('paths and methods', () => {
  it('answers 405 with Allow on every route for every other method', async () => {
    const api = await shared()
    const paths = new Set((Object.values(ROUTES) as Route[]).map((route) => route.path))
    for (const path of paths) {
      const allowed = new Set(
        (Object.values(ROUTES) as Route[]).filter((route) => route.path === path).map((route) => route.method)
      )
      if (allowed.has('GET')) allowed.add('HEAD')
      const target = path.replace(/\{\w+\}/, 'x')
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE']) {
        if (allowed.has(method as 'GET')) continue
        const answer = await api.call(method, target)
        expect([method, target, answer.status, answer.body?.error.code]).toEqual([
          method,
          target,
          405,
          'E_METHOD_NOT_ALLOWED'
        ])
        expect(answer.headers.allow?.split(', ').sort()).toEqual([...allowed].sort())
      }
    }
  })

  it.each([
    ['/v2/resolve', 400, 'E_UNSUPPORTED_VERSION', ['v1']],
    ['/v0/', 400, 'E_UNSUPPORTED_VERSION', ['v1']],
    ['/v10', 400, 'E_UNSUPPORTED_VERSION', ['v1']],
    ['/v1/nothing', 404, 'E_NOT_FOUND', undefined],
    ['/v1', 404, 'E_NOT_FOUND', undefined],
    ['/v1/%6dodels', 404, 'E_NOT_FOUND', undefined],
    ['/v1/%62lob/nothing', 404, 'E_NOT_FOUND', undefined],
    ['/%76%32/models', 404, 'E_NOT_FOUND', undefined],
    ['/vx/jobs', 404, 'E_NOT_FOUND', undefined],
    ['/metrics', 404, 'E_NOT_FOUND', undefined]
  ])('%s', async (path, status, code, candidates) => {
    const api = await shared()
    for (const method of ['GET', 'POST', 'DELETE']) {
      const answer = await api.call(method, path)
      expect({ status: answer.status, code: answer.body.error.code, candidates: answer.body.error.candidates }).toEqual(
        { status, code, candidates }
      )
    }
    const { body } = await api.get('/v2/resolve')
    expect(body.error.message).toContain('v2')
    expect(body.error.message).toContain('/v2/resolve')
  })
})
