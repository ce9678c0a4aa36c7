import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ConnectionBudget, type ConnectionPlace } from '../../src/net/connection-budget.ts'
import { INDIFFERENT_MS, uselessForMs, WAITING_MS } from '../../src/torrent/peer-set.ts'

test('a quarter of the places is reserved for peers that we dial', () => {
  const budget = new ConnectionBudget(8, 8)
  for (let host = 0; host < 6; host += 1) expect(budget.acquire('incoming', `192.0.2.${host}`)).toBeTypeOf('object')
  expect(budget.acquire('incoming', '192.0.2.7')).toBe('full')
  expect(budget.acquire('outgoing', '192.0.2.8')).toBeTypeOf('object')
  expect(budget.acquire('outgoing', '192.0.2.9')).toBeTypeOf('object')
  expect(budget.acquire('outgoing', '192.0.2.10')).toBe('full')
})

test('each host, or IPv6 customer, has a limited number of places, which it gets back', () => {
  const budget = new ConnectionBudget(100, 2)
  const first = budget.acquire('incoming', '2001:db8:1:2::1') as ConnectionPlace
  expect(budget.acquire('outgoing', '2001:DB8:1:2:ffff::')).toBeTypeOf('object')
  expect(budget.acquire('incoming', '2001:db8:1:2:3:4:5:6')).toBe('host')
  expect(budget.acquire('incoming', '2001:db8:1:3::1')).toBeTypeOf('object')
  first.release()
  first.release()
  expect(budget.acquire('incoming', '2001:db8:1:2::9')).toBeTypeOf('object')
  expect(budget.acquire('incoming', '2001:db8:1:2::9')).toBe('host')
})

test('places are counted correctly, whatever comes and goes', () => {
  const step = fc.record({ incoming: fc.boolean(), host: fc.nat(3), release: fc.nat(20) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const budget = new ConnectionBudget(10, 4)
      const held: { readonly incoming: boolean; readonly host: number; readonly place: ConnectionPlace }[] = []
      const left = new Set<(typeof held)[number]>()
      for (const { incoming, host, release } of steps) {
        const all = [...left]
        const ofHost = all.filter((each) => each.host === host).length
        const isFull = all.length === 10 || (incoming && all.filter((each) => each.incoming).length === 8)
        const place = budget.acquire(incoming ? 'incoming' : 'outgoing', `10.0.0.${host}`)
        expect(typeof place === 'string' ? place : 'taken').toBe(ofHost === 4 ? 'host' : isFull ? 'full' : 'taken')
        if (typeof place !== 'string') left.add(held[held.push({ incoming, host, place }) - 1]!)
        // a place that was released before does not count again
        held[release]?.place.release()
        left.delete(held[release]!)
      }
    })
  )
})

test('a peer that neither wants nor sends anything is useless after its grace period', () => {
  const idle = {
    incoming: true,
    amInterested: false,
    peerInterested: false,
    uploadActiveAt: 0,
    downloadActiveAt: 0
  }
  expect(uselessForMs(idle, INDIFFERENT_MS)).toBe(0)
  expect(uselessForMs(idle, INDIFFERENT_MS + 5)).toBe(5)
  expect(uselessForMs({ ...idle, incoming: false }, 1e9)).toBe(0)
  expect(uselessForMs({ ...idle, uploadActiveAt: 1000 }, INDIFFERENT_MS + 5)).toBe(0)
  expect(uselessForMs({ ...idle, peerInterested: true }, INDIFFERENT_MS + 5)).toBe(0)
  expect(uselessForMs({ ...idle, peerInterested: true }, WAITING_MS + 5)).toBe(5)
})
