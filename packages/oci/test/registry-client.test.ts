// What a registry may make a client do, by responses that never end and by the addresses that it names.
import { createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { digestOf, MAX_DOCUMENT_BYTES, parseOciManifest } from '../src/document.ts'
import { fetchBlob } from '../src/fetch-blob.ts'
import { Repository } from '../src/registry.ts'
import { RegistryClient, readBody } from '../src/registry-client.ts'

/** @returns the URL of a server that sends `first` once it is asked, then `rest` again and again. */
async function drip(first: string, rest: string, everyMs = 5): Promise<URL> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.write(first)
      const timer = setInterval(() => socket.write(rest), everyMs)
      socket.on('close', () => clearInterval(timer))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return new URL(`http://127.0.0.1:${(server.address() as { port: number }).port}/`)
}

function open(registry: string, stallMs = 30_000): RegistryClient {
  const client = new RegistryClient(new URL(`http://${registry}`), { stallMs })
  onTestFinished(() => client.close())
  return client
}
const call = (url: URL) => ({ method: 'GET' as const, url, headers: () => ({}) })
const unavailable = expect.objectContaining({ name: 'OciError', code: 'E_UNAVAILABLE' })

it('endless interim responses do not keep a request waiting forever', async () => {
  const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n'
  const url = await drip('', hint)
  await expect(open(url.host, 300).send(call(url))).rejects.toEqual(unavailable)
})

it('a document that arrives byte by byte is given up', async () => {
  const url = await drip('HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{', ' ')
  const answer = await open(url.host).send(call(url))
  await expect(readBody(answer, 1_000_000, 300)).rejects.toEqual(unavailable)
})

it('a slow blob is abandoned although each attempt makes progress', async () => {
  const sizeBytes = 3_000_000
  const { host } = await drip(`HTTP/1.1 200 OK\r\nContent-Length: ${sizeBytes}\r\n\r\n`, 'x', 20)
  const repository = new Repository(
    { registry: host, repository: 'team/model' },
    { credentials: async () => undefined, slowMs: 200 }
  )
  onTestFinished(() => repository.close())
  let held = 0
  const sink = {
    sizeBytes,
    ranges: () => (held === 0 ? [] : [[0, held] as const]),
    write: async (offset: number, bytes: Uint8Array) => void (held = offset + bytes.length)
  }
  const waits: string[] = []
  const options = { tries: 3, firstDelayMs: 1, onWaiting: (message: string) => void waits.push(message) }
  await expect(fetchBlob(repository, digestOf(Buffer.of(1)), sink, options)).rejects.toEqual(unavailable)
  expect(waits.length).toBe(2)
  expect(held).toBeGreaterThan(0)
})

it.each([
  ['203.0.113.1', 'internet'],
  ['8.8.8.8', 'internet'],
  ['10.0.0.1:5000', 'network'],
  ['[fd00::1]:5000', 'network'],
  ['169.254.1.1', 'internet'],
  ['127.0.0.1:5000', 'machine']
])("addresses that the registry %s names have the policy %s, its own the owner's", async (registry, policy) => {
  expect(await open(registry).policyOf(new URL('http://other.example/'))).toBe(policy)
  expect(await open(registry).policyOf(new URL(`http://${registry}/x`))).toBe('owner')
})

it('loopback and link-local addresses are not contacted because a registry names them', async () => {
  for (const host of ['127.0.0.1:1', '[::1]:1', '169.254.169.254', '[::ffff:127.0.0.1]:1', '0.0.0.0:1', 'localhost:1'])
    await expect(open('10.0.0.1:5000').send(call(new URL(`http://${host}/`))), host).rejects.toMatchObject({
      code: 'E_UNAVAILABLE',
      cause: { code: 'ERR_REFUSED_ADDRESS' }
    })
})

it('documents that consist of brackets are not parsed', () => {
  const bytes = Buffer.from('['.repeat(2 << 20) + ']'.repeat(2 << 20))
  const before = process.cpuUsage()
  expect(() => parseOciManifest(bytes)).toThrow(expect.objectContaining({ code: 'E_FORMAT' }))
  // microseconds; parsing took three seconds
  expect(process.cpuUsage(before).user).toBeLessThan(1_000_000)
})

it('documents are limited to 4 MiB, 20,000 layers and 64 levels', () => {
  expect(MAX_DOCUMENT_BYTES).toBe(4 << 20)
  const layer = { mediaType: 'x', digest: digestOf(Buffer.of(1)), size: 1 }
  const sealed = (layers: number, more: object = {}): Buffer =>
    Buffer.from(
      JSON.stringify({ schemaVersion: 2, config: layer, layers: Array.from({ length: layers }, () => layer), ...more })
    )
  const nested = (levels: number): object => ({ x: JSON.parse('['.repeat(levels) + ']'.repeat(levels)) })
  const refused = expect.objectContaining({ code: 'E_FORMAT' })
  expect(parseOciManifest(sealed(20_000)).layers).toHaveLength(20_000)
  expect(() => parseOciManifest(sealed(20_001))).toThrow(refused)
  expect(parseOciManifest(sealed(1, nested(63))).layers).toHaveLength(1)
  expect(() => parseOciManifest(sealed(1, nested(64)))).toThrow(refused)
  const filled = Buffer.concat([sealed(1), Buffer.alloc(MAX_DOCUMENT_BYTES - sealed(1).length, ' ')])
  expect(parseOciManifest(filled).layers).toHaveLength(1)
  expect(() => parseOciManifest(Buffer.concat([filled, Buffer.from(' ')]))).toThrow(refused)
})
