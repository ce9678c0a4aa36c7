import { isIP } from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  DialGuard,
  type DialPolicy,
  isRefusedAddress,
  policyFrom,
  policyOfAddresses,
  policyOfNamer
} from '../src/index.ts'

const POLICIES = ['owner', 'machine', 'network', 'internet'] as const

/** One row for each class of addresses: who may name it. */
const TABLE: readonly (readonly [address: string, policies: readonly DialPolicy[]])[] = [
  ['8.8.8.8', POLICIES],
  ['2606:4700::1111', POLICIES],
  ['::ffff:8.8.8.8', POLICIES],
  ['64:ff9b::808:808', POLICIES],
  ['10.0.0.1', ['owner', 'machine', 'network']],
  ['172.16.0.1', ['owner', 'machine', 'network']],
  ['192.168.0.1', ['owner', 'machine', 'network']],
  ['100.64.0.1', ['owner', 'machine', 'network']],
  ['198.18.0.1', ['owner', 'machine', 'network']],
  ['fc00::1', ['owner', 'machine', 'network']],
  ['fd00::1', ['owner', 'machine', 'network']],
  ['::ffff:10.0.0.1', ['owner', 'machine', 'network']],
  ['127.0.0.1', ['owner', 'machine']],
  ['127.255.0.1', ['owner', 'machine']],
  ['::1', ['owner', 'machine']],
  ['::ffff:127.0.0.1', ['owner', 'machine']],
  ['::ffff:7f00:1', ['owner', 'machine']],
  // where clouds serve credentials
  ['169.254.169.254', ['owner']],
  ['::ffff:169.254.169.254', ['owner']],
  ['fe80::1', ['owner']],
  ['0.0.0.0', ['owner']],
  ['0.1.2.3', ['owner']],
  ['::', ['owner']],
  ['224.0.0.1', ['owner']],
  ['ff02::1', ['owner']],
  ['240.0.0.1', ['owner']],
  ['255.255.255.255', ['owner']],
  ['192.0.0.1', ['owner']],
  ['192.0.2.1', ['owner']],
  ['2001:db8::1', ['owner']],
  // tunnels, by which an inner address is reached in another form
  ['64:ff9b::a00:1', ['owner']],
  ['64:ff9b::7f00:1', ['owner']],
  ['64:ff9b:1::808:808', ['owner']],
  ['2002:7f00:1::1', ['owner']],
  ['2001::1', ['owner']],
  ['::127.0.0.1', ['owner']]
]

function refusedBy(policy: DialPolicy, host: string): boolean {
  try {
    new DialGuard(policy).check(host)
    return false
  } catch (error) {
    expect(isRefusedAddress(error)).toBe(true)
    return true
  }
}

test.each(TABLE)('%s', async (address, policies) => {
  for (const policy of POLICIES) {
    const host = isIP(address) === 6 ? `[${address}]` : address
    expect(refusedBy(policy, host), policy).toBe(!policies.includes(policy))
    expect(await new DialGuard(policy).refuses(address), policy).toBe(!policies.includes(policy))
  }
})

test('names of this machine need no lookup, other names get one', () => {
  for (const name of ['localhost', 'LOCALHOST.', 'a.localhost'])
    expect(POLICIES.filter((policy) => !refusedBy(policy, name))).toEqual(['owner', 'machine'])
  expect(POLICIES.filter((policy) => !refusedBy(policy, 'localhost.example'))).toEqual(POLICIES)
})

describe('a name that leads to loopback', () => {
  const looked = (policy: DialPolicy, all: boolean): Promise<readonly unknown[]> =>
    new Promise((resolve) =>
      new DialGuard(policy).lookup('localhost', { all, family: 4 }, (...given) => resolve(given))
    )

  test('is refused when it is dialled', async () => {
    const mine = new Error('mine')
    expect((await looked('network', true))[0]).toMatchObject({ code: 'ERR_REFUSED_ADDRESS' })
    expect((await looked('internet', false))[0]).toMatchObject({ code: 'ERR_REFUSED_ADDRESS' })
    await new Promise<void>((resolve) =>
      new DialGuard('internet', () => mine).lookup('localhost', {}, (error) => {
        expect(error).toBe(mine)
        resolve()
      })
    )
  })

  test('is returned in the requested form', async () => {
    expect(await looked('machine', true)).toEqual([null, [{ address: '127.0.0.1', family: 4 }]])
    expect(await looked('owner', false)).toEqual([null, '127.0.0.1', 4])
  })
})

test.each([
  [['127.0.0.1', '::1'], 'machine'],
  [['10.0.0.1'], 'network'],
  [['10.0.0.1', '127.0.0.1'], 'network'],
  // whoever is in the open may add any address to its name
  [['8.8.8.8', '10.0.0.1'], 'internet'],
  [['8.8.8.8', '127.0.0.1'], 'internet'],
  [['169.254.1.1'], 'internet'],
  [['169.254.1.1', '127.0.0.1'], 'internet'],
  [['198.18.0.5'], 'network'],
  [[], 'internet']
])('addresses at %j have the policy %s', (addresses, policy) => {
  expect(policyOfAddresses(addresses)).toBe(policy)
})

test.each([
  ['[::1]', 'machine'],
  ['x.localhost', 'machine'],
  ['10.0.0.1', 'network'],
  ['8.8.8.8', 'internet']
])('%s has the policy %s', async (host, policy) => {
  expect(await policyOfNamer(host)).toBe(policy)
})

test.each([
  ['127.0.0.1', 'owner', 'machine'],
  ['127.0.0.1', 'network', 'network'],
  ['127.0.0.1', 'internet', 'internet'],
  ['10.0.0.1', 'machine', 'network'],
  ['8.8.8.8', 'network', 'internet']
] as const)('a server at %s on the word of %s names others on the word of %s', async (host, named, others) => {
  const policyOf = policyFrom(new URL(`http://${host}:1/`), named)
  expect(await policyOf(new URL(`https://${host}:1/x`))).toBe(named)
  expect(await policyOf(new URL(`http://${host}:2/`))).toBe(others)
})
