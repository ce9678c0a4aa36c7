import { mkdirSync, renameSync, rmdirSync } from 'node:fs'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { createConnection } from 'node:net'
import { expect, test } from 'vitest'
import { sharedByFile } from '../support/daemon.ts'
import { gguf } from '../support/models.ts'
import { contentOf } from './fake-webseed.ts'
import { MODEL, Node } from './nodes.ts'

const served = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  const share = await node.publish(MODEL)
  const content = await contentOf(share)
  const { port } = new URL(share.webseeds[0]!)
  return { node, share, content, port: Number(port) }
})

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** A request with the path as it is written. */
async function ask(path: string, options: { method?: string; headers?: Record<string, string> } = {}): Promise<Answer> {
  const { port } = await served()
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: '127.0.0.1', port, path, method: options.method ?? 'GET', headers: options.headers ?? {}, agent: false },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () =>
          resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) })
        )
        response.on('error', reject)
      }
    )
    request.on('error', reject)
    request.end()
  })
}

const weightsPath = async (): Promise<string> => `/${(await served()).share.name}/model-q8_0.gguf`
const codeOf = ({ body }: Answer): string => (JSON.parse(body.toString()) as { error: { code: string } }).error.code

function expectHardened({ headers }: Answer): void {
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'content-disposition': 'attachment'
  })
  expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
}

test('files, layers and the torrent of a seeded artifact, hardened, without CORS', async () => {
  const { share, content } = await served()
  for (const [path, bytes] of content) {
    const answer = await ask(path.split('/').map(encodeURIComponent).join('/'))
    expect(answer.status, path).toBe(200)
    expect(answer.body.equals(bytes), path).toBe(true)
    expectHardened(answer)
  }
  const torrent = await ask(`/bt/${share.infohash.slice(9)}.torrent`)
  expect(torrent).toMatchObject({ status: 200, headers: { 'content-type': 'application/x-bittorrent' } })
  expectHardened(torrent)
})

test.each([
  ['evil.example', 421],
  ['evil.example:80', 421],
  ['127.0.0.1:1', 421],
  ['127.0.0.1.evil.example', 421],
  ['localhost', 421],
  ['[::1]', 421],
  ['0.0.0.0', 421],
  ['127.0.0.2', 421],
  // libtorrent leaves the port out
  ['127.0.0.1', 200]
])('Host "%s" is answered with %i', async (host, status) => {
  const answer = await ask(await weightsPath(), { headers: { Host: host } })
  expect(answer.status).toBe(status)
  if (status !== 200) expectHardened(answer)
})

test('Host with the port, in any case, and localhost', async () => {
  const { port } = await served()
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`]) {
    expect((await ask(await weightsPath(), { headers: { Host: host } })).status, host).toBe(200)
  }
})

test.each([
  [{ Origin: 'http://evil.example' }, 403],
  [{ Origin: 'null' }, 403],
  [{ 'Sec-Fetch-Site': 'cross-site' }, 403],
  [{ 'Sec-Fetch-Site': 'same-origin' }, 403],
  [{ 'Sec-Fetch-Site': 'none' }, 200]
])('%o is answered with %i', async (headers, status) => {
  const answer = await ask(await weightsPath(), { headers: headers as Record<string, string> })
  expect(answer.status).toBe(status)
  expectHardened(answer)
  if (status === 403) expect(answer.body.length).toBeLessThan(1_000)
})

test.each(['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH', 'TRACE', 'PROPFIND'])('%s is not allowed', async (method) => {
  const answer = await ask(await weightsPath(), { method })
  expect(answer.status).toBe(405)
  expect(answer.headers.allow).toBe('GET, HEAD')
})

test('HEAD has the head of GET and no body', async () => {
  const { content, share } = await served()
  const bytes = content.get(`/${share.name}/model-q8_0.gguf`)!
  const answer = await ask(await weightsPath(), { method: 'HEAD' })
  expect(answer).toMatchObject({
    status: 200,
    headers: { 'content-length': String(bytes.length), 'accept-ranges': 'bytes' }
  })
  expect(answer.body).toHaveLength(0)
  for (const path of [
    `/bt/${share.infohash.slice(9)}.torrent`,
    `/bt/piece-layers/${share.infohash.slice(9)}`,
    '/nothing'
  ]) {
    expect((await ask(path, { method: 'HEAD' })).body).toHaveLength(0)
  }
})

test.each<[string, number, [number, number] | undefined]>([
  ['bytes=0-0', 206, [0, 1]],
  ['bytes=100-199', 206, [100, 200]],
  ['bytes=-10', 206, [-10, Infinity]],
  ['bytes=5000000-', 206, [5_000_000, Infinity]],
  ['bytes=0-99999999999999999999', 206, [0, Infinity]],
  ['BYTES=1-2', 206, [1, 3]],
  ['bytes=0-1,5-6', 200, [0, Infinity]],
  ['items=0-1', 200, [0, Infinity]],
  ['bytes=99999999-', 416, undefined],
  ['bytes=5-1', 416, undefined],
  ['bytes=x', 416, undefined]
])('Range: %s is answered with %i', async (header, status, part) => {
  const { content, share } = await served()
  const bytes = content.get(`/${share.name}/model-q8_0.gguf`)!
  const answer = await ask(await weightsPath(), { headers: { Range: header } })
  expect(answer.status).toBe(status)
  if (part !== undefined)
    expect(answer.body.equals(bytes.subarray(part[0], part[1] === Infinity ? undefined : part[1]))).toBe(true)
  else {
    expect(answer.headers['content-range']).toBe(`bytes */${bytes.length}`)
    expect(codeOf(answer)).toBe('E_RANGE_INVALID')
  }
})

test('names in percent-encoding of either case, with unicode; a plus is a plus', async () => {
  const { share, content } = await served()
  const bytes = content.get(`/${share.name}/größe a+b%20c/adapter.tar`)!
  const encoded = `/${share.name}/gr%C3%B6%C3%9Fe%20a%2Bb%2520c/adapter.tar`
  for (const path of [encoded, encoded.toLowerCase(), encoded.replace('%2B', '+')]) {
    const answer = await ask(path)
    expect(answer.status, path).toBe(200)
    expect(answer.body.equals(bytes), path).toBe(true)
  }
  for (const path of [encoded.replace('%20', '+'), encoded.replace('%2B', '%20'), encoded.replace('%2520', '%20')])
    expect((await ask(path)).status, path).toBe(404)
})

test('every other path is 404, and nothing is listed', async () => {
  const { share } = await served()
  const hex = share.infohash.slice(9)
  const paths = [
    '/',
    '/bt',
    '/bt/',
    '/bt/piece-layers/',
    `/${share.name}`,
    `/${share.name}/`,
    `/${share.name}/manifest`,
    `/${share.name}/manifest/`,
    `/bt/${hex}`,
    `/bt/${hex.toUpperCase()}.torrent`,
    `/bt/${'0'.repeat(64)}.torrent`,
    `/bt/piece-layers/${'0'.repeat(64)}`,
    `/${share.name}/config.json`,
    `/${share.name}/LICENSE`,
    `//${share.name}/model-q8_0.gguf`,
    `/${share.name}//model-q8_0.gguf`,
    `/${share.name}/../${share.name}/model-q8_0.gguf`,
    `/${share.name}/%2e%2e/%2e%2e/format`,
    `/${share.name}/model-q8_0.gguf/`,
    `/${share.name}/model-q8_0.gguf%00`,
    `/${share.name}/%ff`,
    `/${share.name}/%`,
    '/v1/models',
    '/v1/status',
    '/index.html',
    '/favicon.ico',
    `/x/manifest/sha256-${share.manifestDigest.slice(7)}`,
    `/${'a'.repeat(9_000)}`
  ]
  for (const path of paths) {
    const answer = await ask(path)
    expect(answer.status, path).toBe(404)
    expect(codeOf(answer), path).toBe('E_NOT_FOUND')
    expectHardened(answer)
    // an error is JSON of ours: no name that is served is in it
    expect(answer.body.toString()).not.toContain('gguf')
  }
})

test('requests that are not HTTP get a response or are disconnected, and the listener continues', async () => {
  const { port } = await served()
  for (const bytes of [
    'GARBAGE\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n`,
    `GET /${'a'.repeat(40_000)} HTTP/1.1\r\n\r\n`,
    'GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n',
    'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
  ]) {
    const text = await new Promise<string>((resolve) => {
      const socket = createConnection({ port, host: '127.0.0.1' })
      let answer = ''
      socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
      socket.on('error', () => undefined)
      socket.on('close', () => resolve(answer))
      socket.end(bytes)
    })
    expect(text).not.toMatch(/^HTTP\/1\.1 2/)
  }
  expect((await ask(await weightsPath(), { method: 'HEAD' })).status).toBe(200)
})

test('an artifact that left the swarm is gone', async () => {
  const node = await Node.start()
  const share = await node.publish({ 'm-q8_0.gguf': gguf(5000, 7) })
  const url = `${share.webseeds[0]}${share.name}/m-q8_0.gguf`
  expect((await fetch(url)).status).toBe(200)
  await node.stop()
  await expect(fetch(url)).rejects.toThrow()
})

/** What comes back for bytes that are sent as they are, until the listener closes. */
async function rawAnswer(bytes: string): Promise<string> {
  const { port } = await served()
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: '127.0.0.1', port })
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
    socket.write(bytes)
  })
}

test('pipelined requests are answered in order, also before junk and CONNECT', async () => {
  const { port } = await served()
  const path = await weightsPath()
  const get = (range: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nRange: bytes=${range}\r\n\r\n`
  for (const [last, status] of [
    ['junk\r\n\r\n', 400],
    ['CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n', 405]
  ] as const) {
    const answer = await rawAnswer(`${get('0-0')}${get('1-1')}${get('2-2')}${last}`)
    const heads = [...answer.matchAll(/HTTP\/1\.1 (\d+) [\s\S]*?\r\n\r\n/g)]
    expect(heads.map(([head, code]) => /content-range: bytes (\d)/i.exec(head)?.[1] ?? Number(code))).toEqual([
      '0',
      '1',
      '2',
      status
    ])
  }
})

test('a half-closed client gets its answer, and nothing is smuggled', async () => {
  const { port } = await served()
  const hidden = `GET /bt/${'0'.repeat(64)}.torrent HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`
  for (const header of [
    'Content-Length: 0, 40',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding : chunked'
  ]) {
    const answer = await rawAnswer(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${header}\r\n\r\n0\r\n\r\n${hidden}`)
    expect([answer.slice(9, 12), answer.match(/HTTP\/1\.1 /g)?.length]).toEqual(['400', 1])
  }
  const path = await weightsPath()
  const ended = await new Promise<string>((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port })
    let answer = ''
    socket.on('data', (chunk) => (answer += chunk.toString('latin1')))
    socket.on('close', () => resolve(answer))
    // an answer that takes a few turns: the file is opened and read
    socket.end(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
  })
  const bytes = (await ask(path)).body.length
  expect([ended.slice(9, 12), ended.length - ended.indexOf('\r\n\r\n') - 4]).toEqual(['200', bytes])
})

test('without its store, or with another folder in its place, nothing is served, even from memory', async () => {
  const { node, share } = await served()
  const paths = [
    await weightsPath(),
    `/bt/${share.infohash.slice(9)}.torrent`,
    `/bt/piece-layers/${share.infohash.slice(9)}`
  ]
  const statuses = () => Promise.all(paths.map(async (path) => (await ask(path)).status))
  const away = `${node.root}.away`
  renameSync(node.root, away)
  try {
    expect(await statuses()).toEqual([503, 503, 503])
    mkdirSync(node.root, { mode: 0o700 })
    expect(await statuses()).toEqual([503, 503, 503])
    expect((await ask('/nothing')).status).toBe(503)
    rmdirSync(node.root)
  } finally {
    renameSync(away, node.root)
  }
  expect(await statuses()).toEqual([200, 200, 200])
})
