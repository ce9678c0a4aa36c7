// Clients that almost speak HTTP: `SVC_MUTATED_REQUESTS` of them at the management socket and the webseed port of a daemon
// process, while another one sends requests. It lives, answers, and its memory does not grow with their number.

import { connect, type Socket } from 'node:net'
import { mutateBytes, randomFrom } from '@svc/testkit/mutate'
import { expect, test } from 'vitest'
import { startSeedingProcess } from '../support/seeding-process.ts'

const COUNT = Number(process.env.SVC_MUTATED_REQUESTS ?? 200_000)
const ROUNDS = 10
/** At a time. */
const CLIENTS = 50
/** From the end of the first round, in which caches and pools fill, to the end of the last. */
const MAX_GROWTH_MIB = 64

const request = (method: string, target: string, more = '', body = ''): string =>
  `${method} ${target} HTTP/1.1\r\nHost: x\r\n${body === '' ? '' : `Content-Length: ${body.length}\r\n`}${more}\r\n${body}`

test(`${COUNT} mutated requests: the daemon keeps answering, and its memory stays flat`, {
  timeout: 120_000 + COUNT * 20
}, async () => {
  const { daemon, ref, webseedPort, webseedPath, digest, rssMiB } = await startSeedingProcess()
  const random = randomFrom(4_711)
  const query = `ref=${encodeURIComponent(ref)}`
  const host = `Host: 127.0.0.1:${webseedPort}`
  const templates = [
    request('GET', `/v1/resolve?${query}`).repeat(2),
    request('GET', `/v1/open?${query}`),
    request('GET', `/v1/blob/${digest}`, 'Range: bytes=0-999\r\n'),
    request('HEAD', `/v1/blob/${digest}`),
    request('GET', '/v1/models') + request('CONNECT', 'x:80'),
    request('POST', '/v1/ensure', '', JSON.stringify({ ref })),
    request('POST', '/v1/verify', '', JSON.stringify({ target: 'all', more: [[1, 2], { a: 'ä' }] })),
    request('POST', '/v1/ensure', 'Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n').concat(
      '2\r\n{}\r\n0\r\n\r\n'
    ),
    request('GET', webseedPath, 'Range: bytes=5-2000\r\n').replace('Host: x', host).repeat(2),
    request('GET', `/bt/${'0'.repeat(64)}.torrent`).replace('Host: x', host)
  ].map((text) => Buffer.from(text))

  /** Sends, stops sending, reads to the end. */
  const one = (): Promise<void> =>
    new Promise((resolve) => {
      const kind = random(templates.length)
      const bytes = mutateBytes(random, templates[kind]!)
      const socket: Socket = kind < 8 ? connect(daemon.socketPath) : connect(webseedPort, '127.0.0.1')
      socket.on('error', () => undefined).once('close', () => resolve())
      socket.resume().end(bytes)
      // some leave before they are answered
      if (random(20) === 0) setImmediate(() => socket.destroy())
    })

  let over = false
  const times: number[] = []
  const asking = async (): Promise<void> => {
    while (!over) {
      const begun = performance.now()
      expect((await daemon.resolve(ref)).status).toBe(200)
      times.push(performance.now() - begun)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  const asked = asking()
  asked.catch(() => undefined)
  const rss = [rssMiB()]
  for (let round = 0; round < ROUNDS; round++) {
    let left = COUNT / ROUNDS
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        while (left-- > 0) await one()
      })
    )
    rss.push(rssMiB())
  }
  over = true
  await asked

  times.sort((a, b) => a - b)
  const at = (part: number): string => times[Math.floor(times.length * part)]!.toFixed(1)
  console.log(`RSS ${rss.map(Math.round).join(', ')} MiB; resolve p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`)
  expect(rss.at(-1)! - rss[1]!).toBeLessThan(MAX_GROWTH_MIB)
  expect((await daemon.verify('all')).verify).toEqual({})
  expect(daemon.child.exitCode).toBe(null)
  expect(daemon.log.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([])
})
