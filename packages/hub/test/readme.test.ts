import { createServer } from 'node:net'
import { readmeExample } from '@svc/testkit/readme'
import { expect, test } from 'vitest'
import * as api from '../src/index.ts'
import { closeAfterTests, fakeHub } from './fixtures.ts'

closeAfterTests()

test('the example of the README runs', async () => {
  const fake = await fakeHub({
    repos: [{ id: 'some-org/some-model', files: [{ path: 'config.json', content: Buffer.from('{"a":1}') }] }]
  })
  const { runWith } = readmeExample(import.meta.url)
  expect(await runWith({ api, endpoint: fake.endpoint })).toEqual([[expect.stringMatching(/^[0-9a-f]{40}$/), true]])
})

test('the defaults are those that the README promises', async () => {
  expect(api.createHub().endpoint).toBe('https://huggingface.co')
  expect(() => api.createHub({ endpoint: 'ftp://x' })).toThrow(api.HubError)
  expect(() => api.createHub({ token: 'a b' })).toThrow(api.HubError)
  // a proxy from the environment is used: it sees the request instead of the hub.
  const seen: string[] = []
  const proxy = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes) => {
      seen.push(String(bytes).split('\r\n')[0] as string)
      socket.end('HTTP/1.1 451 no\r\ncontent-length: 0\r\n\r\n')
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const { port } = proxy.address() as { port: number }
  const before = process.env.HTTPS_PROXY
  process.env.HTTPS_PROXY = `http://127.0.0.1:${port}`
  try {
    const hub = api.createHub({ endpoint: 'https://hub.invalid', retry: { sleep: async () => {} } })
    await expect(hub.listing('a/b')).rejects.toMatchObject({ code: 'E_SOURCE_UNAVAILABLE' })
    await hub.close()
  } finally {
    if (before === undefined) delete process.env.HTTPS_PROXY
    else process.env.HTTPS_PROXY = before
    proxy.close()
  }
  expect(seen[0]).toMatch(/^CONNECT hub\.invalid:443 /)
})
