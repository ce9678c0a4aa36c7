import { expect, test } from 'vitest'
import { PeerBook } from '../../src/torrent/peer-book.ts'
import { isFar } from '../../src/torrent/zone.ts'

test.each([
  [undefined, true, 'b', false],
  [undefined, false, undefined, false],
  ['a', true, 'a', false],
  ['a', true, 'b', true],
  ['a', true, undefined, false],
  ['a', false, 'a', true],
  ['a', false, undefined, true]
])('in %s, a peer (trusted %s, of zone %s) is far: %s', (own, trusted, zone, far) =>
  expect(isFar({ trusted, zone }, own)).toBe(far)
)

test('far addresses are dialled last, and only while few far peers are connected', () => {
  const book = new PeerBook()
  const [far, near] = ['8.8.0.1', '8.8.0.2'].map((host) => ({ host, port: 6881 })) as [
    { host: string; port: number },
    { host: string; port: number }
  ]
  book.add(far, 'stranger', false)
  book.add(near, 'stranger', false)
  book.markFar(far)
  expect(book.next(0, new Set(), false)?.address).toEqual(near)
  expect(book.next(0, new Set(), false)).toBeUndefined()
  expect(book.next(0, new Set())?.address).toEqual(far)
})
