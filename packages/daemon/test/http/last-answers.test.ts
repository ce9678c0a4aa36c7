// After an answer with `Connection: close` comes nothing (RFC 9112 §9.6).

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createHttpServer } from '@svc/internal-server'
import { describe, expect, it } from 'vitest'
import { sharedByFile, testDaemon } from '../support/daemon.ts'
import { post, rawExchange, request, responsesOf } from '../support/raw.ts'

const shared = sharedByFile(async (cleanUp) => ({ api: await testDaemon({}, cleanUp) }))

const NEXT = {
  GET: request('/v1/status'),
  junk: 'junk\r\n\r\n',
  CONNECT: 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n',
  'no Host': 'GET /v1/jobs HTTP/1.1\r\n\r\n',
  'large headers': request('/v1/jobs', `A: ${'x'.repeat(20_000)}\r\n`)
}
const LAST: readonly (readonly [string, string, readonly number[]])[] = [
  ['a last GET', request('/v1/jobs', 'Connection: close\r\n'), [200]],
  ['HTTP/1.0', 'GET /v1/jobs HTTP/1.0\r\n\r\n', [200]],
  ['no Host', 'GET /v1/jobs HTTP/1.1\r\n\r\n', [400]],
  ['an expectation', request('/v1/jobs', 'Expect: tea\r\n'), [417]],
  ['GET, no Host', `${request('/v1/jobs')}GET / HTTP/1.1\r\n\r\n`, [200, 400]]
]

describe('nothing is answered after', () => {
  it.each(LAST)('%s', async (_name, last, statuses) => {
    const { api } = await shared()
    for (const [name, next] of Object.entries(NEXT)) {
      for (const end of [false, true]) {
        const responses = responsesOf(await rawExchange(api.socketPath, last + next, { end }))
        expect([name, responses.map(({ status }) => status)]).toEqual([name, statuses])
        for (const { status, body } of responses)
          if (status >= 400) expect(typeof JSON.parse(body).error.code).toBe('string')
      }
    }
  })

  it('requests pipelined after the last one are not started', async () => {
    const begun: string[] = []
    const server = createHttpServer((asked, response) => {
      begun.push(asked.url!)
      asked.resume().on('end', () => response.end('x'))
    })
    const path = join(mkdtempSync(join(tmpdir(), 'svc-last-')), 's')
    await new Promise<void>((resolve) => server.listen(path, resolve))
    const lasts = [request('/1', 'Connection: close\r\n'), 'GET /1 HTTP/1.0\r\n\r\n']
    for (const last of lasts) await rawExchange(path, `${request('/0')}${last}${post('/2', {})}${post('/3', {})}`)
    expect(begun).toEqual(['/0', '/1', '/0', '/1'])
    await new Promise((resolve) => server.close(resolve))
    rmSync(dirname(path), { recursive: true })
  })

  it('a body that is too large gets one response, and nothing after it', async () => {
    const { api } = await shared()
    const large = `POST /v1/ensure HTTP/1.1\r\nHost: x\r\nContent-Length: ${2 << 20}\r\n\r\n`
    const answer = await rawExchange(api.socketPath, `${large}junk\x00${request('/v1/status').repeat(3)}`, {
      end: true
    })
    expect(responsesOf(answer).map(({ status }) => status)).toEqual([413])
  })
})
