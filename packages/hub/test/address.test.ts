import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { createHub, createMemorySink } from '../src/index.ts'

test.each([
  'https://127.0.0.1/x',
  'https://[::1]/x',
  'https://printer.localhost/',
  'http://8.8.4.4/x',
  'https://user@8.8.4.4/',
  'data:,x'
])('a public hub cannot redirect to %s, and no token is sent there', async (location) => {
  // the traffic ends in a dispatcher of the test: no network is needed to see what is refused.
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

test.each(['127.0.0.1', 'localhost'])(
  'on the word of the internet the endpoint itself is not contacted at %s',
  async (host) => {
    let asked = 0
    const server = createServer((_, response) => {
      asked += 1
      response.end('[]')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const hub = createHub({
      endpoint: `http://${host}:${port}`,
      policy: 'internet',
      retry: { tries: 1, firstDelayMs: 1 }
    })
    try {
      await expect(hub.listing('org/name')).rejects.toMatchObject({ code: 'E_SOURCE_UNAVAILABLE' })
      expect(asked).toBe(0)
    } finally {
      await hub.close()
      server.close()
    }
  }
)
