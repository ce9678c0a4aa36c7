// Servers on loopback that answer as they like: what a request makes of it.
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createSocketServer, type Socket } from 'node:net'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { expect, onTestFinished, test, vi } from 'vitest'
import { HttpClient, type HttpClientOptions, type RedirectError, type Response } from '../src/index.ts'

async function serve(listener: RequestListener): Promise<URL> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
}

/** Writes `first` when a request comes, then `rest` again and again. */
async function drip(first: string, rest: string, onRest?: () => void): Promise<URL> {
  const sockets = new Set<Socket>()
  const server = createSocketServer((socket) => {
    sockets.add(socket)
    let timer: NodeJS.Timeout | undefined
    socket.on('error', () => undefined).on('close', () => clearInterval(timer))
    socket.once('data', () => {
      socket.write(first)
      timer = setInterval(() => socket.write(rest, onRest), 10)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
}

function client(options: HttpClientOptions = {}): HttpClient {
  const made = new HttpClient(options)
  onTestFinished(() => made.close())
  return made
}
const get = (url: URL, options?: HttpClientOptions, signal?: AbortSignal): Promise<Response> =>
  client(options).send({ url, policy: 'owner', signal })
const follow = (url: URL, seen: string[] = []): Promise<Response | URL> =>
  client().follow(url, {
    redirects: 3,
    hop: (at) => {
      seen.push(at.href)
      return { policy: 'owner', headers: at.origin === url.origin ? { authorization: 'secret' } : {} }
    }
  })

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n'

test('a body is delivered as it arrived, once', async () => {
  const bytes = Buffer.alloc(300_000, 'abc')
  const url = await serve((_, response) => response.end(bytes))
  expect((await (await get(url)).bytes(300_000)).equals(bytes)).toBe(true)
})

test('a document that is too large is refused at its head, or where it exceeds the limit', async () => {
  const said = await serve((_, response) => response.writeHead(200, { 'content-length': 1_000_000 }).write('x'))
  const unsaid = await serve((_, response) => response.writeHead(200).write(Buffer.alloc(2_000)))
  for (const url of [said, unsaid])
    await expect((await get(url)).bytes(1_000)).rejects.toMatchObject({ code: 'ERR_TOO_LARGE' })
})

test.each<[string, string, string, string]>([
  ['a head that never ends', 'HTTP/1.1 200 OK\r\n', 'A: b\r\n', 'ERR_STALLED'],
  ['interim answers without end', '', 'HTTP/1.1 103 Early Hints\r\n\r\n', 'ERR_STALLED'],
  ['silence', '', '', 'ERR_STALLED'],
  ['silence in the body', `${HEAD}some`, '', 'ERR_STALLED'],
  ['a drip', HEAD, 'x', 'ERR_SLOW']
])('%s is given up', async (_, first, rest, code) => {
  const clock = new VirtualClock()
  let onRest = (): void => undefined
  const url = await drip(first, rest, () => onRest())
  const answer = get(url, { clock, ...(code === 'ERR_SLOW' ? { slowMs: 200 } : { stallMs: 200 }) })
  if (first.startsWith(HEAD)) await answer
  const done = answer.then((response) => response.bytes(1_000_000))
  const onGivenUp = vi.fn()
  done.catch(onGivenUp)
  for (let n = 0; n < 4; n++) {
    expect(onGivenUp).not.toHaveBeenCalled()
    await new Promise<void>((resolve) => {
      onRest = resolve
    })
    await clock.advance(50)
  }
  await expect(done).rejects.toMatchObject({ code })
})

test('bytes that arrived before the connection broke are delivered, then the failure', async () => {
  const url = await serve((_, response) => {
    response.writeHead(200, { 'content-length': 10 }).write('12345', () => response.destroy())
  })
  const chunks: Uint8Array[] = []
  const read = async (): Promise<void> => {
    for await (const chunk of await get(url)) chunks.push(chunk)
  }
  await expect(read()).rejects.toThrow()
  expect(Buffer.concat(chunks).toString()).toBe('12345')
})

test('a slow reader pauses the connection, and does not count as a slow server', async () => {
  const clock = new VirtualClock()
  const did: string[] = []
  const controller = {
    pause: () => did.push('pause'),
    resume: () => did.push('resume'),
    abort: () => did.push('abort')
  }
  let handler: Record<string, (...given: unknown[]) => void> = {}
  const dispatch = (_: unknown, given: typeof handler): boolean => {
    handler = given
    handler.onRequestStart!(controller)
    handler.onResponseStart!(controller, 200, {})
    return true
  }
  const response = await get(new URL('http://8.8.8.8/'), {
    dispatcher: { dispatch } as never,
    clock,
    stallMs: 300,
    slowMs: 100
  })
  for (let n = 0; n < 4; n++) handler.onResponseData!(controller, new Uint8Array(300_000))
  expect(did).toEqual(['pause'])
  await clock.advance(10_000)
  const body = response[Symbol.asyncIterator]()
  for (let n = 0; n < 4; n++) expect((await body.next()).value).toHaveLength(300_000)
  expect(did).toEqual(['pause', 'resume'])
  // what comes after that is the server's again
  const next = expect(body.next()).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_S/) })
  await clock.advance(1_000)
  await next
  expect(did).toEqual(['pause', 'resume', 'abort'])
})

test('an abort ends a request with its reason, before the head and within the body', async () => {
  const reason = new Error('enough')
  for (const first of ['', HEAD]) {
    const stop = new AbortController()
    const done = get(await drip(first, first === '' ? '' : 'x'), {}, stop.signal).then(async (response) => {
      for await (const _ of response) stop.abort(reason)
    })
    if (first === '') setImmediate(() => stop.abort(reason))
    await expect(done).rejects.toBe(reason)
  }
  await expect(get(new URL('http://127.0.0.1:9/'), {}, AbortSignal.abort(reason))).rejects.toBe(reason)
})

test('redirects are followed, and headers are decided for each origin', async () => {
  const asked: (string | undefined)[] = []
  const storage = await serve(({ headers }, response) => {
    asked.push(headers.authorization)
    response.end('blob')
  })
  const server = await serve(({ url, headers }, response) => {
    asked.push(headers.authorization)
    response.writeHead(307, { location: url === '/' ? '/moved' : storage.href }).end()
  })
  const seen: string[] = []
  const response = (await follow(server, seen)) as Response
  expect((await response.bytes(4)).toString()).toBe('blob')
  expect(response.url.href).toBe(storage.href)
  expect(seen).toEqual([server.href, `${server.href}moved`, storage.href])
  expect(asked).toEqual(['secret', 'secret', undefined])
})

test.each(['file:///etc/passwd', 'http://user@127.0.0.1/', 'http://127.0.0.1:99999/', '/'])(
  'a redirect to %s is refused',
  async (location) => {
    const url = await serve((_, response) => response.writeHead(302, { location }).end())
    const refused = { code: 'ERR_REDIRECT' } satisfies Partial<RedirectError>
    await expect(follow(url)).rejects.toMatchObject(refused)
  }
)

test('refused addresses are not dialled, by address or by name', async () => {
  let asked = 0
  const url = await serve((_, response) => {
    asked += 1
    response.end()
  })
  for (const host of ['127.0.0.1', 'localhost']) {
    const send = client().send({ url: new URL(`http://${host}:${url.port}/`), policy: 'internet' })
    await expect(send).rejects.toMatchObject({ code: 'ERR_REFUSED_ADDRESS' })
  }
  expect(asked).toBe(0)
})
