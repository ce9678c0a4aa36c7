import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { guardedLookup, isInnerAddress, isInnerHost } from '../src/address.ts'
import { createHub, createMemorySink } from '../src/index.ts'

test.each([
  '127.0.0.1',
  '10.1.2.3',
  '172.31.255.255',
  '192.168.0.1',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '224.0.0.1',
  '255.255.255.255',
  '::1',
  '::',
  'fe80::1',
  'fe80::1%eth0',
  'fd00::1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '64:ff9b::7f00:1',
  '64:ff9b::10.0.0.1',
  'ff02::1',
  'fec0::1',
  '2002:808:808::1',
  '2001::1',
  '64:ff9b:1::808:808'
])('%s is an inner address', (address) => expect(isInnerAddress(address)).toBe(true))

test.each(['8.8.8.8', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::808:808', 'name.example'])(
  '%s is none',
  (address) => expect(isInnerAddress(address)).toBe(false)
)

test('localhost names need no lookup', () => {
  expect(['localhost', 'LOCALHOST.', 'a.localhost'].map(isInnerHost)).toEqual([true, true, true])
  expect(isInnerHost('localhost.example')).toBe(false)
})

test('names that resolve to an inner address are not connected to', async () => {
  const error = await new Promise((resolve) => guardedLookup('localhost', { all: true }, resolve))
  expect(error).toMatchObject({ code: 'ERR_INNER_ADDRESS' })
})

test.each([
  'https://127.0.0.1/x',
  'https://[::1]/x',
  'https://printer.localhost/',
  'http://8.8.4.4/x',
  'https://user@8.8.4.4/',
  'data:,x'
])('a hub in the open cannot redirect to %s, and no token leaves for it', async (location) => {
  // The traffic ends in a dispatcher of the test: no network is needed to see what is refused.
  const asked: string[] = []
  const hub = createHub({
    endpoint: 'https://8.8.8.8',
    token: 'hf_secret',
    dispatcher: {
      dispatch: (options: { origin: string }, handler: Record<string, (...given: unknown[]) => void>) => {
        asked.push(options.origin)
        const controller = { pause() {}, resume() {}, abort() {} }
        handler.onRequestStart?.(controller)
        handler.onResponseStart?.(controller, 302, { location })
        handler.onResponseEnd?.(controller, {})
        return true
      }
    } as never
  })
  const file = { repoId: 'a/b', commit: '0'.repeat(40), path: 'x', sizeBytes: 1, gitBlobSha1: '0'.repeat(40) }
  await expect(hub.download(file, createMemorySink(1))).rejects.toMatchObject({
    code: 'E_SOURCE_UNAVAILABLE',
    reason: 'refused-redirect'
  })
  expect(asked).toEqual(['https://8.8.8.8'])
})

test.each(['127.0.0.1', 'localhost'])('with publicOnly the endpoint itself is not contacted at %s', async (host) => {
  let asked = 0
  const server = createServer((_, response) => {
    asked += 1
    response.end('[]')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const hub = createHub({
    endpoint: `http://${host}:${port}`,
    publicOnly: true,
    retry: { tries: 1, firstDelayMs: 1 }
  })
  try {
    await expect(hub.listing('org/name')).rejects.toMatchObject({ code: 'E_SOURCE_UNAVAILABLE' })
    expect(asked).toBe(0)
  } finally {
    await hub.close()
    server.close()
  }
})
