// What pages of other origins can do to the bridge in a real browser that holds a session: nothing.

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type BrowserContext, haveBrowser, type Page, startBrowser } from '@svc/testkit/browser'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { laterUndo, type TestDaemon, testDaemon } from '../support.ts'
import { type OpenBridge, openBridge } from './support.ts'

const REBOUND = 'rebound.example'
const EVIL = 'evil.example'

describe.skipIf(!haveBrowser)('a browser (chromium is needed)', () => {
  const undo = laterUndo()
  let daemon: TestDaemon
  let context: BrowserContext
  beforeAll(async () => {
    daemon = await testDaemon({}, undo.later)
    const browser = await startBrowser([EVIL, REBOUND])
    undo.later(() => browser.close())
    context = await browser.newContext()
  })
  afterAll(undo.all)

  const pageOf = async (): Promise<Page> => {
    const page = await context.newPage()
    onTestFinished(() => page.close())
    return page
  }

  /** The bridge, and a tab of its page. */
  async function opened(): Promise<{ readonly bridge: OpenBridge; readonly tab: Page; readonly address: string }> {
    const bridge = await openBridge(daemon.socketPath)
    const tab = await pageOf()
    await tab.goto(bridge.bridge.newLink())
    await tab.waitForURL((url) => url.pathname !== '/')
    return { bridge, tab, address: `${bridge.origin}${bridge.page}` }
  }

  it('opens the page by its link, after a reload and in a second tab, but not by the same link twice', async () => {
    const bridge = await openBridge(daemon.socketPath)
    const [tab, other] = [await pageOf(), await pageOf()]
    const link = bridge.bridge.newLink()
    await tab.goto(link)
    await tab.waitForURL(`${bridge.origin}${bridge.page}`)
    expect(await tab.title()).toBe('models')
    await tab.reload()
    expect(await tab.title()).toBe('models')
    // scripts cannot read the cookie, and the history does not have the token
    expect(await tab.evaluate('document.cookie')).toBe('')
    expect(await tab.evaluate('history.length')).toBeLessThanOrEqual(2)
    await other.goto(`${bridge.origin}${bridge.page}`)
    expect(await other.title()).toBe('models')
    expect(await other.evaluate(`fetch('v1/models').then((answer) => answer.status)`)).toBe(200)
    const refused = other.waitForResponse(`${bridge.origin}/session`)
    await other.goto(link)
    expect((await refused).status()).toBe(403)
    expect(await other.title()).toBe('svc')
  })

  it.each([
    ['a worker', 'an address', []],
    ['a worker', 'a name', ['127.0.0.1', '::1']],
    ['cached answers', 'an address', []],
    ['cached answers', 'a name', ['127.0.0.1', '::1']]
  ])('is out of reach of %s of whoever had its port before, at %s of its own', async (left, _where, addresses) => {
    const predecessor = await servePlanting(left === 'a worker')
    const before = await pageOf()
    await before.goto(`http://127.0.0.1:${predecessor.port}/`)
    await before.waitForFunction('globalThis.isPlanted')
    await predecessor.close()
    // from now on, it answers without a server
    await before.goto(`http://127.0.0.1:${predecessor.port}/`)
    expect(await before.title()).toBe(left === 'a worker' ? 'the worker' : 'before')
    expect(await before.evaluate('globalThis.isStolen')).toBe(true)

    const { bridge, origin, page } = await openBridge(daemon.socketPath, {
      port: predecessor.port,
      resolve: async () => addresses
    })
    const tab = await pageOf()
    await tab.goto(bridge.newLink())
    await tab.waitForURL(`${origin}${page}`)
    expect(await tab.title()).toBe('models')
    expect(await tab.evaluate('navigator.serviceWorker.controller')).toBe(null)
  })

  it('is refused under another name of the same address', async () => {
    const bridge = await openBridge(daemon.socketPath, { resolve: async () => ['127.0.0.1'] })
    const tab = await pageOf()
    const { port } = bridge.bridge
    const link = new URL(bridge.bridge.newLink())
    for (const path of ['/', bridge.page, `${bridge.page}v1/models`]) {
      const answer = await tab.goto(`http://${REBOUND}:${port}${path}${path === '/' ? link.hash : ''}`)
      expect(answer!.status()).toBe(403)
      expect(await tab.content()).toContain('E_FORBIDDEN')
    }
    // and the link is still good
    await tab.goto(link.href)
    await tab.waitForURL(`${bridge.origin}${bridge.page}`)
  })

  it.each([
    ['another site', EVIL],
    ['another port', undefined]
  ])('shows nothing to a page of %s that knows the path, and lets it do nothing', async (_where, host) => {
    const { bridge, tab, address } = await opened()
    const cookies: string[] = []
    const { hostname } = new URL(address)
    const evil = await serve(hostile(address), cookies, host ?? hostname)
    const answered: { readonly line: string; readonly status: number }[] = []
    const note = (message: unknown): void => {
      const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
      if (request.socket.localPort === bridge.bridge.port)
        answered.push({
          line: `${request.method} ${request.url!.replace(bridge.page, '')}`,
          status: response.statusCode
        })
    }
    subscribe('http.server.response.finish', note)
    onTestFinished(() => void unsubscribe('http.server.response.finish', note))
    const attacker = await pageOf()
    await attacker.goto(`http://${host ?? hostname}:${evil}/`)
    const seen = (await attacker.waitForFunction('globalThis.seen').then((handle) => handle.jsonValue())) as Record<
      string,
      unknown
    >
    expect(seen).toEqual({
      fetch: 'failed',
      'fetch with credentials': 'failed',
      'blind fetch': 'failed',
      'blind post': 'failed',
      'json post': 'failed',
      put: 'failed',
      events: 'failed',
      image: 'failed',
      script: 'failed',
      style: 'failed',
      socket: 'failed',
      frame: 'unreadable',
      form: 'unreadable',
      window: 'unreadable'
    })
    const lines = answered.map(({ line }) => line)
    expect(lines).toEqual(expect.arrayContaining(['GET v1/models', 'POST v1/gc', 'GET events', 'GET app.js', 'GET ']))
    // the browser sent only the preflight
    expect(lines).toContain('OPTIONS v1/seed')
    expect(lines).not.toContain('PUT v1/seed')
    for (const { line, status } of answered) expect({ line, status }).toEqual({ line, status: 403 })
    // no collection was started, nothing was kept private, and the server of the attacker has no cookie of ours
    expect(await daemon.svc('jobs', '--json')).toMatchObject({ stdout: '{"jobs":[]}\n' })
    expect(cookies.filter((cookie) => cookie.includes('svc_ui'))).toEqual([])
    expect(cookies.length).toBeGreaterThan(0)
    // the user's own tab still works
    expect(await tab.evaluate(`fetch('v1/models').then((answer) => answer.status)`)).toBe(200)
  })
})

/** A web server that answers everything with one page, and notes the cookies that it gets. A name means 127.0.0.1. */
async function serve(html: string, cookies: string[], host: string): Promise<number> {
  const server: Server = createServer((request, response) => {
    cookies.push(request.headers.cookie ?? '')
    response.writeHead(200, { 'content-type': 'text/html' }).end(html)
  })
  await new Promise<void>((listening) => server.listen(0, host === EVIL ? '127.0.0.1' : host, listening))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A web server whose page leaves a worker and cached answers, the entry's script among them, in the browser. */
async function servePlanting(withWorker: boolean): Promise<{ readonly port: number; close(): Promise<void> }> {
  const script = `globalThis.isStolen = true`
  const answers: Readonly<Record<string, readonly [type: string, body: string]>> = {
    '/': [
      'text/html',
      `<!doctype html><title>before</title><script type="module" src="/enter.js"></script><script type="module">
${withWorker ? `navigator.serviceWorker.register('/worker.js')\nawait navigator.serviceWorker.ready` : ''}
globalThis.isPlanted = true
</script>`
    ],
    '/enter.js': ['text/javascript', script],
    '/worker.js': [
      'text/javascript',
      `onfetch = (event) => event.respondWith(new Response('<!doctype html><title>the worker</title><script>${script}</script>', { headers: { 'content-type': 'text/html' } }))`
    ]
  }
  const server = createServer(({ url = '' }, response) => {
    const [type, body] = answers[url] ?? ['text/plain', '']
    response.writeHead(200, { 'content-type': type, 'cache-control': 'max-age=86400' }).end(body)
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.closeAllConnections()
      return new Promise((closed) => server.close(() => closed()))
    }
  }
}

/** A page that tries what a page can against the address of another one. */
const hostile = (address: string): string => `<!doctype html><title>hostile</title><body><script type="module">
const address = ${JSON.stringify(address)}
const seen = {}
const failing = (work) => work.then(() => 'done', () => 'failed')
const fetched = (path, init) => fetch(address + path, init).then((answer) => answer.type === 'opaque' ? 'opaque' : 'read', () => 'failed')
const json = { 'content-type': 'application/json' }
const element = (name, attributes) => new Promise((resolve, reject) => {
  const made = Object.assign(document.createElement(name), attributes, { onload: resolve, onerror: reject })
  document.body.append(made)
})
const readable = (view) => { try { return view.document.body.textContent.length >= 0 && view.location.href !== 'about:blank' ? 'readable' : 'empty' } catch { return 'unreadable' } }
seen.fetch = await fetched('v1/models')
seen['fetch with credentials'] = await fetched('v1/models', { credentials: 'include' })
seen['blind fetch'] = await fetched('v1/models', { mode: 'no-cors', credentials: 'include' })
seen['blind post'] = await fetched('v1/gc', { mode: 'no-cors', credentials: 'include', method: 'POST', body: '{}' })
seen['json post'] = await fetched('v1/gc', { credentials: 'include', method: 'POST', headers: json, body: '{}' })
seen.put = await fetched('v1/seed', { credentials: 'include', method: 'PUT', headers: json, body: '{"seed":false}' })
seen.events = await new Promise((resolve) => {
  const source = new EventSource(address + 'events', { withCredentials: true })
  source.onopen = () => resolve('open')
  source.onerror = () => { source.close(); resolve('failed') }
})
seen.image = await failing(element('img', { src: address + 'app.js' }))
seen.script = await failing(element('script', { src: address + 'app.js' }))
seen.style = await failing(element('link', { rel: 'stylesheet', href: address + 'app.js' }))
seen.socket = await new Promise((resolve) => {
  const socket = new WebSocket(address.replace('http', 'ws') + 'events')
  socket.onopen = () => resolve('open')
  socket.onerror = () => resolve('failed')
})
const loaded = (frame) => new Promise((resolve) => { frame.onload = resolve })
const frame = Object.assign(document.createElement('iframe'), { src: address })
document.body.append(frame)
await loaded(frame)
seen.frame = readable(frame.contentWindow)
const target = Object.assign(document.createElement('iframe'), { name: 'target' })
document.body.append(target)
const form = Object.assign(document.createElement('form'), { method: 'POST', action: address + 'v1/gc', enctype: 'text/plain', target: 'target' })
const field = Object.assign(document.createElement('input'), { name: '{"graceSeconds":0,"x":"', value: '"}' })
form.append(field)
document.body.append(form)
form.submit()
await loaded(target)
seen.form = readable(target.contentWindow)
const view = window.open(address)
for (let i = 0; view !== null && i < 100 && readable(view) === 'empty'; i++) await new Promise((resolve) => setTimeout(resolve, 50))
seen.window = view === null || view.closed ? 'unreadable' : readable(view)
globalThis.seen = seen
</script>`
