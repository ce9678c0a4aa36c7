import { formatAddress, type PeerAddress } from '@svc/internal-net'
import { describe, expect, test } from 'vitest'
import { PeerExchange, type PexPeer } from '../../src/discovery/pex.ts'
import { formatPex, parsePex } from '../../src/wire/extensions.ts'

const PUBLIC = { host: '8.8.8.8', port: 1 }
const PRIVATE = { host: '10.0.0.1', port: 2 }
const LOOPBACK = { host: '127.0.0.1', port: 3 }

/** The end of a connection that peer exchange sees, and what it sent there. */
function peerAt(id: number, remoteHost: string, listenAddress?: PeerAddress): PexPeer & { readonly told: string[][] } {
  const told: string[][] = []
  return {
    id,
    remoteHost,
    listenAddress,
    extended: { ids: new Map([['ut_pex', 1]]) } as unknown as PexPeer['extended'],
    sendExtension: (_name, payload) => void told.push(parsePex(payload).map(formatAddress)),
    told
  }
}

function exchange(): { readonly pex: PeerExchange; readonly found: [string, boolean][] } {
  const found: [string, boolean][] = []
  return {
    pex: new PeerExchange((address, allowPrivate) => void found.push([formatAddress(address), allowPrivate])),
    found
  }
}

describe('which sources may name which addresses', () => {
  test.each([
    ['8.8.4.4', false],
    ['2606:4700::1111', false],
    ['10.9.9.9', true],
    ['127.0.0.1', true],
    ['fd00::1', true],
    // mapped and translated addresses are what they stand for
    ['::ffff:8.8.4.4', false]
  ])('a peer connected at %s may name private addresses: %s', (host, may) => {
    const { pex, found } = exchange()
    const peer = peerAt(1, host)
    pex.joined(peer, [peer], 0)
    pex.message(peer, formatPex([PUBLIC, PRIVATE, LOOPBACK], []), 0)
    expect(found).toEqual([PUBLIC, PRIVATE, LOOPBACK].map((address) => [formatAddress(address), may]))
  })

  test('private addresses are sent only to peers on private addresses', () => {
    const { pex } = exchange()
    const others = [PUBLIC, PRIVATE, LOOPBACK].map((address, i) => peerAt(10 + i, address.host, address))
    const outside = peerAt(1, '8.8.4.4')
    const inside = peerAt(2, '192.168.0.7')
    for (const peer of [outside, inside]) pex.joined(peer, [...others, peer], 0)
    expect(outside.told).toEqual([[formatAddress(PUBLIC)]])
    expect(inside.told).toEqual([[PUBLIC, PRIVATE, LOOPBACK].map(formatAddress)])
  })
})

test('peers are exchanged only with peers that support it', () => {
  const { pex, found } = exchange()
  const silent = { ...peerAt(1, '8.8.4.4'), extended: undefined }
  pex.joined(silent, [peerAt(2, PUBLIC.host, PUBLIC)], 0)
  pex.message(silent, formatPex([PUBLIC], []), 0)
  expect([silent.told, found]).toEqual([[], []])
})
