import { expect, test } from 'vitest'
import { PeerBook } from '../../src/torrent/peer-book.ts'

const stranger = (n: number) => ({ host: `8.8.${n >> 8}.${n & 255}`, port: 6881 })

test("beyond the limit of addresses, those that failed most are dropped, and the user's stay", () => {
  const book = new PeerBook()
  const named = { host: '127.0.0.1', port: 9 }
  expect(book.add(named, 'user', false)).toBe(true)
  for (let n = 0; n < 1_999; n++) expect(book.add(stranger(n), 'stranger', false)).toBe(true)
  // two that were tried and did not answer, one of them twice.
  const failed: string[] = []
  let nowMs = 0
  for (let tries = 0; tries < 2; tries++) {
    const { address } = book.next(nowMs, new Set(['127.0.0.1:9']))!
    book.over(address, 'failed', nowMs)
    failed.push(address.host)
  }
  nowMs += 1
  expect(book.size).toBe(2_000)
  for (const n of [2_000, 2_001]) expect(book.add(stranger(n), 'stranger', false)).toBe(true)
  // what is known is refused, what was forgotten is new again
  for (const n of [500, 1_000, 1_998]) expect(book.add(stranger(n), 'stranger', false)).toBe(false)
  for (const host of failed) expect(book.add({ host, port: 6881 }, 'stranger', false)).toBe(true)
  for (let n = 2_002; n < 4_000; n++) book.add(stranger(n), 'stranger', false)
  expect(book.size).toBe(2_000)
  expect(book.next(nowMs, new Set())?.address).toEqual(named)
})

test.each(['127.0.0.1', '10.0.0.1', '192.168.1.1', '169.254.169.254', '::1', 'fe80::1', 'fd00::1', '::ffff:10.0.0.1'])(
  '%s is accepted from the user and from peers at such addresses, not from other strangers',
  (host) => {
    expect(new PeerBook().add({ host, port: 6881 }, 'stranger', false)).toBe(false)
    expect(new PeerBook().add({ host, port: 6881 }, 'stranger', true)).toBe(true)
    expect(new PeerBook().add({ host, port: 6881 }, 'user', false)).toBe(true)
  }
)

test('host names are accepted only from the user', () => {
  const named = { host: 'peer.example', port: 6881 }
  expect(new PeerBook().add(named, 'stranger', true)).toBe(false)
  expect(new PeerBook().add(named, 'user', false)).toBe(true)
})

test('an IPv6 customer that lies from changing addresses is banned as a whole; IPv4 neighbours are not', () => {
  const book = new PeerBook()
  const of = (n: number, network = '2a00:1:2:3') => ({ host: `${network}::${n.toString(16)}`, port: 6881 })
  for (let n = 1; n <= 3; n++) book.ban(of(n), 0)
  book.ban(of(3), 0)
  expect([1, 3, 4].map((n) => book.isBanned(of(n)))).toEqual([true, true, false])
  expect(book.add(of(9), 'stranger', false)).toBe(true)
  book.ban(of(4), 0)
  expect([5, 0xffff].map((n) => book.isBanned(of(n)))).toEqual([true, true])
  expect(book.isBanned(of(5, '2a00:1:2:4'))).toBe(false)
  expect(book.add(of(10), 'stranger', false)).toBe(false)
  for (let n = 0; n < 10; n++) book.ban(stranger(n), 0)
  expect(book.isBanned(stranger(10))).toBe(false)
  // the one that was known is forgotten
  expect([book.size, book.next(0, new Set())]).toEqual([0, undefined])
})
