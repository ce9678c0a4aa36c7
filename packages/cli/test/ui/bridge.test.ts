import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { promisify } from 'node:util'
import { canBeAnotherUser, startGreedyUser } from '@svc/testkit/greedy-user'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from '../support.ts'
import { type Asked, ask, enter, json, openBridge, raw } from './support.ts'

const ADDRESS = /^127\.\d+\.\d+\.\d+$/
const NAME = /^[0-9a-f]{32}\.localhost$/
const undo = laterUndo()
let daemon: TestDaemon
beforeAll(async () => {
  daemon = await testDaemon({}, undo.later)
})
afterAll(undo.all)
const opened = () => openBridge(daemon.socketPath)

it.each<[string, string, Asked]>([
  ['the entry', '/', {}],
  ['a page', '/page/', {}],
  ['the API', '/page/v1/models', {}],
  ['a path of the daemon', '/v1/models', {}],
  ['a wrong token', '/session', { method: 'POST', ...json({ token: 'none' }) }],
  ['a body that is none', '/session', { method: 'POST', body: 'x', headers: { 'content-type': 'application/json' } }],
  ['a large body', '/session', { method: 'POST', ...json({ token: 'x'.repeat(2 << 20) }) }],
  ['another method', '/', { method: 'DELETE' }],
  ['another host', '/', { headers: { host: 'evil.example' } }],
  ['another page', '/', { headers: { origin: 'http://evil.example' } }],
  ['a wrong session', '/page/', { headers: { cookie: `svc_ui=${'x'.repeat(43)}` } }]
])('a refusal names nothing of the owner: %s', async (_, path, asked) => {
  const { origin, page, ask: asking } = await openBridge(daemon.socketPath, { files: new Map() })
  const sent = asked.method === 'POST' ? { ...asked, headers: { ...asked.headers, origin } } : asked
  const { status, headers, body } = await asking(path.replace('/page/', page), sent)
  expect(status).toBeGreaterThanOrEqual(400)
  const text = `${JSON.stringify(headers)} ${body}`
  // folders, the page's own path, and versions
  for (const secret of [daemon.folder, process.cwd(), page, '1.2.3']) expect(text).not.toContain(secret)
  expect(text).not.toMatch(/[\w.]+\/[\w.-]+:[a-z0-9_]+|(?<![\d.])\d+\.\d+\.\d+(?![\d.])|\b[a-z0-9]+_[a-z_]+\b/)
})

describe('access', () => {
  it('serves the page to the browser that redeemed the link, and again on reload', async () => {
    const { ask, page, cookie } = await opened()
    for (const site of ['same-origin', 'none']) {
      const headers = { cookie, 'sec-fetch-site': site, 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
      const answer = await ask(page, { headers })
      expect(answer).toMatchObject({ status: 200, body: expect.stringContaining('<title>models</title>') })
    }
    const script = await ask(`${page}app.js`, { headers: { cookie, 'sec-fetch-site': 'same-origin' } })
    expect(script).toMatchObject({ status: 200, headers: { 'content-type': 'text/javascript; charset=utf-8' } })
  })

  it('makes a 256-bit link that works once and replaces the previous one', async () => {
    const { bridge } = await opened()
    const [first, second] = [bridge.newLink(), bridge.newLink()]
    expect(Buffer.from(new URL(second).hash.slice(1), 'base64url')).toHaveLength(32)
    expect(new URL(second)).toMatchObject({ pathname: '/', search: '' })
    await expect(enter(bridge, first)).rejects.toThrow('403')
    await enter(bridge, second)
    await expect(enter(bridge, second)).rejects.toThrow('403')
  })

  it('admits eight browsers, and drops the oldest for a ninth', async () => {
    const { bridge, ask, page, cookie } = await opened()
    const later = []
    for (let i = 0; i < 8; i++) later.push((await enter(bridge)).cookie)
    const statuses = [cookie, ...later].map(async (each) => (await ask(page, { headers: { cookie: each } })).status)
    expect(await Promise.all(statuses)).toEqual([403, ...Array(8).fill(200)])
  })

  it('binds the cookie to an unguessable path, out of reach of scripts and other sites', async () => {
    const { bridge, origin, page } = await opened()
    const { headers, body } = json({ token: new URL(bridge.newLink()).hash.slice(1) })
    const answer = await ask(origin, '/session', { method: 'POST', headers: { ...headers, origin }, body: body! })
    expect(answer.headers['set-cookie']).toEqual([
      expect.stringMatching(/^svc_ui=[\w-]{43}; Path=\/[\w-]{22}\/; HttpOnly; SameSite=Strict$/)
    ])
    expect(answer.headers['set-cookie']![0]).toContain(`Path=${page};`)
  })

  it('has an origin that never was before: an address, or a name where the system resolves it', async () => {
    const here = async (): Promise<string[]> => ['::1', '127.0.0.1']
    const origins = []
    for (const resolve of [undefined, undefined, here, here]) {
      const { origin, ask, page, cookie } = await openBridge(daemon.socketPath, resolve && { resolve })
      expect((await ask(page, { headers: { cookie } })).status).toBe(200)
      origins.push(new URL(origin).hostname)
    }
    expect(origins).toEqual([ADDRESS, ADDRESS, NAME, NAME].map((pattern) => expect.stringMatching(pattern)))
    expect(new Set(origins).size).toBe(4)
    // a name that leads anywhere else is no name
    const away = await openBridge(daemon.socketPath, { resolve: async () => ['127.0.0.1', '192.0.2.1'] })
    expect(away.origin).toMatch(/^http:\/\/127\./)
    // names are resolved by the browser, which is elsewhere
    const { origin } = await openBridge(daemon.socketPath, { env: { SSH_CONNECTION: '192.0.2.1 1 192.0.2.2 22' } })
    expect(new URL(origin).hostname).toMatch(NAME)
  })

  it('listens only on its address, or on both that localhost stands for', async () => {
    const [one, both] = [await opened(), await openBridge(daemon.socketPath, { resolve: async () => ['127.0.0.1'] })]
    const table = readFileSync('/proc/net/tcp', 'latin1') + readFileSync('/proc/net/tcp6', 'latin1')
    const boundTo = (wanted: number): (string | undefined)[] => {
      const port = wanted.toString(16).toUpperCase().padStart(4, '0')
      return [...table.matchAll(new RegExp(`: ([0-9A-F]+):${port} [0-9A-F:]+ 0A `, 'g'))].map(([, at]) => at)
    }
    expect(boundTo(one.bridge.port)).toEqual([expect.stringMatching(/^[0-9A-F]{6}7F$/)])
    expect(boundTo(both.bridge.port)).toEqual(['0100007F', '00000000000000000000000001000000'])
  })

  it('starts on no port where another program has one of these addresses', async () => {
    const other = createServer().listen(0, '::1')
    await once(other, 'listening')
    onTestFinished(() => void other.close())
    const { port } = other.address() as AddressInfo
    const opening = openBridge(daemon.socketPath, { port, resolve: async () => ['127.0.0.1'] })
    await expect(opening).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })
})

describe('refusals', () => {
  /** Each is the right request but for one thing. */
  const ATTACKS: Readonly<Record<string, Asked & { readonly path?: string }>> = {
    'no cookie': { headers: { cookie: '' } },
    'a made-up cookie': { headers: { cookie: `svc_ui=${'A'.repeat(43)}` } },
    'a name that is bound to this address': { headers: { host: 'rebound.example' } },
    'that name with the port': { headers: { host: 'rebound.example:PORT' } },
    'localhost, which others may listen on': { headers: { host: 'localhost:PORT' } },
    'another address of this machine': { headers: { host: '127.0.0.1:PORT' } },
    'another port': { headers: { host: 'NAME:1' } },
    'no port': { headers: { host: 'NAME' } },
    'an address with a trailing dot': { headers: { host: 'NAME.:PORT' } },
    'a page of another site that sends': { method: 'POST', headers: { origin: 'https://evil.example' } },
    'a page of another port that sends': { method: 'POST', headers: { origin: 'http://NAME:1' } },
    'a page in a sandbox that sends': { method: 'POST', headers: { origin: 'null' } },
    'a page over https that sends': { method: 'POST', headers: { origin: 'https://NAME:PORT' } },
    'a page of another address that sends': { method: 'POST', headers: { origin: 'http://127.0.0.1:PORT' } },
    'something without an origin that sends': { method: 'POST' },
    'a page of another site that reads': { headers: { origin: 'https://evil.example' } },
    'an image on another site': {
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }
    },
    'a script on another port': {
      headers: { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' }
    },
    'a frame on another site': {
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }
    },
    'a link on another site': {
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    },
    'a link on another port': {
      headers: { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    },
    'a form on another site': {
      method: 'POST',
      headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
    },
    'a WebSocket of another site': {
      headers: {
        connection: 'Upgrade',
        upgrade: 'websocket',
        origin: 'https://evil.example',
        'sec-websocket-version': '13'
      }
    },
    'a check before another site sends': {
      method: 'OPTIONS',
      headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    },
    'another path': { path: '/v1/models' },
    'the path of another bridge': { path: `/${'A'.repeat(22)}/v1/models` }
  }

  it.each(Object.keys(ATTACKS))('refuses %s', async (name) => {
    const { bridge, origin, page, cookie, ask } = await opened()
    const filledIn = (value: string): string =>
      value.replace('PORT', `${bridge.port}`).replace('NAME', new URL(origin).hostname)
    const { path = `${page}v1/models`, method = 'GET', headers = {} } = ATTACKS[name]!
    const filled = Object.fromEntries(
      Object.entries({ cookie, ...headers }).map(([key, value]) => [key, filledIn(`${value}`)])
    )
    const sent = method === 'POST' ? { ...json({}), method } : { method, headers: {} }
    const answer = await ask(method === 'POST' ? `${page}v1/gc` : path, {
      ...sent,
      headers: { ...sent.headers, ...filled }
    })
    expect({ status: answer.status, code: JSON.parse(answer.body).error.code }).toEqual({
      status: 403,
      code: 'E_FORBIDDEN'
    })
    expect(Object.keys(answer.headers).filter((key) => key.startsWith('access-control-'))).toEqual([])
    // none of them started a collection
    expect(await daemon.svc('jobs', '--json')).toMatchObject({ stdout: '{"jobs":[]}\n' })
  })

  it('refuses a token that is missing, wrong, of another type, or sent by another page', async () => {
    const { bridge, ask, origin } = await opened()
    const token = new URL(bridge.newLink()).hash.slice(1)
    for (const body of [
      {},
      { token: '' },
      { token: 1 },
      { token: [token] },
      { token: `${token}A` },
      { token: token.slice(1) }
    ]) {
      const sent = json(body)
      const answer = await ask('/session', { ...sent, method: 'POST', headers: { ...sent.headers, origin } })
      expect(answer.status).toBe(403)
      expect(answer.headers['set-cookie']).toBeUndefined()
    }
    for (const from of [{}, { origin: 'https://evil.example' }, { origin, host: 'rebound.example' }]) {
      const sent = json({ token })
      const answer = await ask('/session', { ...sent, method: 'POST', headers: { ...sent.headers, ...from } })
      expect(answer.status).toBe(403)
    }
    // none of them used it up
    await enter(bridge, `${origin}/#${token}`)
  })

  it("does not accept another bridge's cookie", async () => {
    const [one, other] = [await opened(), await opened()]
    expect((await other.ask(`${other.page}v1/models`, { headers: { cookie: one.cookie } })).status).toBe(403)
    expect((await other.ask(`${other.page}v1/models`, { headers: { cookie: other.cookie } })).status).toBe(200)
  })

  it('shows only the entry page, as a refusal, without a session', async () => {
    const { ask, page } = await opened()
    const elsewhere = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    expect(await ask('/', { headers: elsewhere })).toMatchObject({
      status: 403,
      body: expect.stringContaining('enter.js')
    })
    for (const path of [page, `${page}app.js`, `${page}index.html`, `${page}events`, '/favicon.ico', '/index.html'])
      expect((await ask(path)).status).toBe(403)
    expect((await ask('/', { headers: { ...elsewhere, 'sec-fetch-dest': 'iframe' } })).body).not.toContain('enter.js')
    expect((await ask('/', { headers: { host: 'rebound.example' } })).body).not.toContain('enter.js')
  })

  it.skipIf(process.getuid?.() !== 0)('refuses another user of the machine (needs root)', async () => {
    const { origin, page } = await opened()
    const who = ['--reuid=65534', '--regid=65534', '--clear-groups']
    const shown = ['curl', '-s', '-m', '60', '-o', '/dev/null', '-w', '%{http_code}']
    const asNobody = async (path: string, ...more: string[]): Promise<string> =>
      (await promisify(execFile)('setpriv', [...who, ...shown, ...more, `${origin}${path}`])).stdout
    for (const path of ['/', page, `${page}v1/models`, '/v1/models']) expect(await asNobody(path)).toBe('403')
    const body = JSON.stringify({ token: 'A'.repeat(43) })
    const type = ['-H', 'content-type: application/json', '-H', `origin: ${origin}`]
    expect(await asNobody('/session', ...type, '-d', body)).toBe('403')
  })
})

describe('connections without a session', () => {
  it('end after one answer, whatever it was', async () => {
    const { origin, ask, page, cookie } = await opened()
    const request = (path: string, more = ''): string =>
      `GET ${path} HTTP/1.1\r\nHost: ${new URL(origin).host}\r\n${more}\r\n`
    for (const path of ['/', '/enter.js', page, '/nothing'])
      expect((await raw(origin, request(path).repeat(2))).match(/HTTP\/1\.1 \d+/g)).toHaveLength(1)
    for (const path of ['/', '/enter.js']) expect((await ask(path)).headers.connection).toBe('close')
    const stay = `${request(page, `Cookie: ${cookie}\r\n`)}${request(page, `Cookie: ${cookie}\r\nConnection: close\r\n`)}`
    expect((await raw(origin, stay)).match(/HTTP\/1\.1 200/g)).toHaveLength(2)
  })

  it.skipIf(!canBeAnotherUser)(
    'of another user, however many, keep out neither the page nor a new browser (needs root)',
    async () => {
      const { bridge, origin, ask, page, cookie } = await opened()
      const { hostname, port } = new URL(origin)
      const door = { host: hostname, port: Number(port) }
      onTestFinished(await startGreedyUser([door], { connections: 700, addresses: 1, pauseMs: 5 }))
      for (let i = 0; i < 20; i++) {
        expect((await ask(page, { headers: { cookie } })).status).toBe(200)
        expect((await ask('/')).status).toBe(403)
      }
      const other = await enter(bridge)
      expect((await ask(page, { headers: { cookie: other.cookie } })).status).toBe(200)
    }
  )
})

describe('every answer', () => {
  it('that is no answer to a request is kept from caches too', async () => {
    const { origin } = await opened()
    const host = `Host: ${new URL(origin).host}\r\n`
    for (const bytes of [
      'nonsense\r\n\r\n',
      `GET / HTTP/1.1\r\n\r\n`,
      `GET / HTTP/1.1\r\n${host}Expect: something\r\n\r\n`,
      `GET / HTTP/1.1\r\n${host}X: ${'x'.repeat(17_000)}\r\n\r\n`
    ])
      expect(await raw(origin, bytes)).toMatch(/^HTTP\/1\.1 4\d\d .*\r\nCache-Control: no-store\r\n/s)
  })

  it('is kept from caches, frames, sniffing and other origins', async () => {
    const { ask, page, cookie } = await opened()
    const answers = [
      await ask('/'),
      await ask('/enter.js'),
      await ask(page, { headers: { cookie } }),
      await ask(`${page}v1/models`, { headers: { cookie } }),
      await ask('/nothing')
    ]
    expect(answers.map(({ status }) => status)).toEqual([403, 200, 200, 200, 403])
    for (const { headers } of answers) {
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin'
      })
      const policy = headers['content-security-policy'] as string
      expect(policy).toContain("default-src 'none'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toMatch(/unsafe|\*|https?:/)
      expect(Object.keys(headers).filter((key) => key.startsWith('access-control-'))).toEqual([])
    }
  })
})

describe('requests that no page would send', () => {
  it.each([
    '../package.json',
    '..%2fpackage.json',
    '%2e%2e/package.json',
    './app.js',
    '/app.js',
    'app.js/',
    'app.js%00',
    'APP.JS',
    'enter.js',
    '..\\package.json'
  ])('finds no file at %s', async (path) => {
    const { fetch } = await opened()
    expect((await fetch(path)).status).toBe(404)
  })

  it('lists the allowed methods after a wrong one', async () => {
    const { fetch } = await opened()
    for (const [method, path] of [
      ['GET', 'v1/gc'],
      ['GET', 'v1/import/hf'],
      ['GET', 'bridge/path'],
      ['GET', 'bridge/open-folder'],
      ['DELETE', 'v1/models'],
      ['HEAD', 'v1/models'],
      ['PATCH', 'v1/private']
    ] as const)
      expect({ path, status: (await fetch(path, { method })).status }).toEqual({ path, status: 405 })
    expect(await daemon.svc('jobs', '--json')).toMatchObject({ stdout: '{"jobs":[]}\n' })
  })

  it('does not pass on routes that read bytes, make snapshots or adopt files', async () => {
    const { fetch } = await opened()
    const blob = `v1/blob/sha256:${'0'.repeat(64)}`
    for (const [method, path] of [
      ['GET', blob],
      ['HEAD', blob],
      ['POST', 'v1/snapshots'],
      ['POST', 'v1/adopt'],
      ['GET', 'v2/']
    ] as const)
      expect((await fetch(path, { method, ...(method === 'POST' && { body: {} }) })).status).toBe(404)
  })

  it('refuses bodies that are too large, of another type, without a length, or not an object', async () => {
    const { ask, page, cookie, origin } = await opened()
    const post = (headers: Record<string, string | number>, body: string): Promise<number> =>
      ask(`${page}v1/gc`, { method: 'POST', headers: { cookie, origin, ...headers }, body }).then(
        ({ status }) => status
      )
    const type = { 'content-type': 'application/json' }
    expect(await post({ 'content-type': 'text/plain' }, '{}')).toBe(415)
    expect(await post({ 'content-type': 'application/x-www-form-urlencoded' }, 'dryRun=1')).toBe(415)
    expect(await post({}, '{}')).toBe(415)
    expect(await post({ ...type, 'transfer-encoding': 'chunked' }, '{}')).toBe(411)
    for (const body of ['[]', '"x"', 'null', '{', '']) expect(await post(type, body)).toBe(400)
    const head = `POST ${page}v1/gc HTTP/1.1\r\nHost: ${new URL(origin).host}\r\nOrigin: ${origin}\r\nCookie: ${cookie}\r\nContent-Type: application/json\r\n`
    // refused by its length, before a byte of it is there
    expect(await raw(origin, `${head}Content-Length: 1048577\r\n\r\n`)).toMatch(/^HTTP\/1\.1 413 /)
    expect(await daemon.svc('jobs', '--json')).toMatchObject({ stdout: '{"jobs":[]}\n' })
  })

  it('never reads a second request from the body of the first', async () => {
    const { origin, page, cookie } = await opened()
    const host = `Host: ${new URL(origin).host}\r\n`
    const hidden = `GET ${page}v1/models HTTP/1.1\r\n${host}Cookie: ${cookie}\r\n\r\n`
    const heads = {
      'two lengths': `Content-Length: 5\r\nContent-Length: 0\r\n`,
      'a length and chunks': `Content-Length: ${hidden.length}\r\nTransfer-Encoding: chunked\r\n`,
      'odd chunks': `Transfer-Encoding: xchunked\r\n`,
      'a space before the colon': `Content-Length : 0\r\n`,
      'a folded line': `X: 1\r\n Content-Length: 3\r\n`
    }
    for (const [name, head] of Object.entries(heads)) {
      const said = await raw(origin, `POST /session HTTP/1.1\r\n${host}${head}\r\n0\r\n\r\n${hidden}`)
      expect({ name, answers: said.match(/HTTP\/1\.1 \d+/g) }).toEqual({
        name,
        answers: [expect.stringMatching(/ 4\d\d$/)]
      })
    }
    const twoHosts = `GET ${page}v1/models HTTP/1.1\r\n${host}Host: rebound.example\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`
    expect(await raw(origin, twoHosts)).toMatch(/^HTTP\/1\.1 40[03] /)
    const absolute = `GET http://rebound.example${page}v1/models HTTP/1.1\r\n${host}Cookie: ${cookie}\r\nConnection: close\r\n\r\n`
    expect(await raw(origin, absolute)).toMatch(/^HTTP\/1\.1 403 /)
    expect(await raw(origin, `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${host}\r\n`)).not.toMatch(/ 2\d\d /)
    const large = `GET / HTTP/1.1\r\n${host}X: ${'x'.repeat(17_000)}\r\n\r\n`
    expect(await raw(origin, large)).toMatch(/^HTTP\/1\.1 431 /)
  })
})
