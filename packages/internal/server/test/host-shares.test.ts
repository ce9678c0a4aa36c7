import fc from 'fast-check'
import { expect, it } from 'vitest'
import { HostShares } from '../src/host-shares.ts'

it('one host may use all places, and gives up those beyond its share to a newcomer', () => {
  const shares = new HostShares<string>(4)
  for (const holder of ['a1', 'a2', 'a3', 'a4']) expect(shares.add('192.0.2.1', holder)).toBeUndefined()
  expect(shares.add('192.0.2.1', 'a5')).toBe('a5')
  expect(shares.add('192.0.2.2', 'b1')).toBe('a1')
  expect(shares.add('192.0.2.2', 'b2')).toBe('a2')
  expect(shares.add('192.0.2.2', 'b3')).toBe('b3')
  // a third finds two hosts with two each
  expect(shares.add('192.0.2.3', 'c1')).toBe('a3')
  expect(shares.add('192.0.2.3', 'c2')).toBe('c2')
  shares.delete('b1')
  shares.delete('b1')
  expect(shares.size).toBe(3)
  expect(shares.add('192.0.2.3', 'c2')).toBeUndefined()
})

it('a place whose holder has left is reused first; the policy chooses among the others', () => {
  const left = new Set<string>()
  const shares = new HostShares<string>(3, {
    hasLeft: (holder) => left.has(holder),
    leastOf: (held) => [...held].at(-1)!
  })
  for (const holder of ['a1', 'a2', 'a3']) shares.add('192.0.2.1', holder)
  left.add('a2')
  expect(shares.add('192.0.2.1', 'a4')).toBe('a2')
  expect(shares.add('192.0.2.1', 'a5')).toBe('a5')
  expect(shares.add('192.0.2.2', 'b1')).toBe('a4')
})

it('a host with as many places or more does not get a place of one that has left', () => {
  const shares = new HostShares<string>(4, { hasLeft: (holder) => holder === 'b1' })
  for (const holder of ['a1', 'a2', 'a3']) shares.add('192.0.2.1', holder)
  shares.add('192.0.2.2', 'b1')
  expect(shares.add('192.0.2.1', 'a4')).toBe('a4')
  expect(shares.add('192.0.2.2', 'b2')).toBe('b1')
})

it('addresses of one IPv6 network are one host', () => {
  const shares = new HostShares<number>(2)
  shares.add('2001:db8:0:1::1', 1)
  shares.add('2001:db8:0:1::2', 2)
  expect(shares.add('2001:db8:0:1:ffff::3', 3)).toBe(3)
  expect(shares.add('2001:db8:0:2::1', 4)).toBe(1)
})

it('a user with many hosts counts as one, and shares places among these', () => {
  const shares = new HostShares<string>(4)
  for (const i of [1, 2, 3]) shares.add(`127.0.0.${i}`, `many${i}`, 'many')
  shares.add('127.0.0.1', 'many4', 'many')
  expect(shares.add('127.0.0.1', 'one1', 'one')).toBe('many1')
  expect(shares.add('192.0.2.1', 'other')).toBe('many4')
  expect(shares.add('127.0.0.9', 'many5', 'many')).toBe('many5')
  expect(shares.add('127.0.0.1', 'one2', 'one')).toBe('one2')
  shares.delete('one1')
  shares.add('127.0.0.3', 'many6', 'many')
  // among the hosts of one user as among users
  expect(shares.add('127.0.0.9', 'many7', 'many')).toBe('many3')
})

it('a holder is counted for its user as soon as that is known', () => {
  const shares = new HostShares<string>(4)
  for (const i of [1, 2, 3, 4]) shares.add(`127.0.0.${i}`, `h${i}`, 'unknown')
  expect(shares.add('127.0.0.5', 'h5', 'unknown')).toBe('h5')
  for (const i of [1, 2, 3, 4]) shares.assign(`h${i}`, 'many')
  shares.assign('h5', 'many')
  expect(shares.size).toBe(4)
  expect(shares.add('127.0.0.5', 'h5', 'unknown')).toBe('h1')
})

it('in any order of arrivals, places stay within the limit, and a refused host has at most one less than others', () => {
  const steps = fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.boolean()), { maxLength: 200 })
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 12 }), (all, limit) => {
      const shares = new HostShares<{ readonly host: number }>(limit)
      const held = new Set<{ readonly host: number }>()
      const countOf = (host: number): number => [...held].filter((each) => each.host === host).length
      for (const [host, comes] of all) {
        if (comes) {
          const holder = { host }
          const going = shares.add(`192.0.2.${host}`, holder)
          if (going !== undefined && going !== holder) {
            expect(countOf(going.host)).toBeGreaterThan(countOf(host) + 1)
            held.delete(going)
          }
          if (going === holder)
            for (const other of held) expect(countOf(other.host)).toBeLessThanOrEqual(countOf(host) + 1)
          else held.add(holder)
        } else {
          const [first] = [...held].filter((each) => each.host === host)
          if (first !== undefined) shares.delete(first)
          if (first !== undefined) held.delete(first)
        }
        expect(shares.size).toBe(held.size)
        expect(held.size).toBeLessThanOrEqual(limit)
      }
    })
  )
})
