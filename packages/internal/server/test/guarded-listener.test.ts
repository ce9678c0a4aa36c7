import { request } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { GuardedListener, sendBytes } from '../src/guarded-listener.ts'

let listener: GuardedListener
beforeAll(async () => {
  listener = await GuardedListener.listen({
    name: 'test',
    hasPages: true,
    address: { host: '127.0.0.1', port: 0 },
    log: { error: (_fields, message) => expect.fail(message) },
    answer: async (asked, response) => sendBytes(asked, response, Buffer.from('x'), {})
  })
})
afterAll(() => listener.close())

function statusOf(headers: Record<string, string>): Promise<number> {
  const { host, port } = listener.address
  const own = `http://${host}:${port}`
  const filled = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value.replace('OWN', own)]))
  return new Promise((resolve, reject) => {
    request({ host, port, agent: false, headers: filled }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode!))
    })
      .on('error', reject)
      .end()
  })
}

it.each([
  ['a program', {}, 200],
  ['an address that somebody typed', { 'sec-fetch-site': 'none' }, 200],
  ['its own page', { 'sec-fetch-site': 'same-origin', origin: 'OWN', referer: 'OWN/page' }, 200],
  ['its own page behind a proxy that adds TLS', { referer: 'https://127.0.0.1:PORT/x' }, 200],
  ['an <img>, which sends a referrer and no origin', { referer: 'http://evil.example/page' }, 403],
  ['a form of another origin', { origin: 'http://evil.example' }, 403],
  ['a sandboxed frame', { origin: 'null' }, 403],
  ['another port of this host', { origin: 'http://127.0.0.1:1' }, 403],
  ['a page of the same site', { 'sec-fetch-site': 'same-site' }, 403],
  ['a page of another site', { 'sec-fetch-site': 'cross-site' }, 403],
  ['a referrer that names no page', { referer: 'about:blank' }, 403]
])('answers or refuses a request of %s', async (_, headers, status) => {
  const { port } = listener.address
  const sent = Object.entries(headers).map(([name, value]) => [name, String(value).replace('PORT', String(port))])
  expect(await statusOf(Object.fromEntries(sent))).toBe(status)
})
