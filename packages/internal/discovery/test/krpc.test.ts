import { decodeBencode, encodeBencode } from '@svc/metainfo'
import { expect, test } from 'vitest'
import { checkKrpc } from '../src/krpc.ts'

const ID = Buffer.alloc(20, 7)
const HASH = Buffer.alloc(20, 9)
const message = (fields: object): Uint8Array => encodeBencode({ t: 'aa', ...fields } as never)
const query = (q: string, a: object): Uint8Array => message({ y: 'q', q, a: { id: ID, ...a } })
const response = (r: object): Uint8Array => message({ y: 'r', r: { id: ID, ...r } })

test.each([
  ['an integer id in a query', query('ping', { id: 5 })],
  ['a short id', query('ping', { id: Buffer.alloc(19) })],
  ['an integer id in a response', response({ id: 5 })],
  ['a list as id in a response', response({ id: [ID] })],
  ['an integer target', query('find_node', { target: 5 })],
  ['no target', query('find_node', {})],
  ['a list as infohash', query('get_peers', { info_hash: [HASH] })],
  ['an infohash of 32 bytes', query('get_peers', { info_hash: Buffer.alloc(32) })],
  ['a dictionary as token', query('announce_peer', { info_hash: HASH, token: {}, port: 5 })],
  ['an endless token', query('announce_peer', { info_hash: HASH, token: Buffer.alloc(65), port: 5 })],
  ['port 0', query('announce_peer', { info_hash: HASH, token: 'x', port: 0 })],
  ['a port beyond all', query('announce_peer', { info_hash: HASH, token: 'x', port: 65_536 })],
  ['a value to be stored', query('put', { token: 'x', v: 'value' })],
  ['a query of another protocol', query('vote', { target: HASH })],
  ['nodes cut short', response({ nodes: Buffer.alloc(27) })],
  ['a list as nodes', response({ nodes: [1] })],
  ['more nodes than anybody names', response({ nodes: Buffer.alloc(33 * 26, 1) })],
  ['a string as values', response({ values: 'abcdef' })],
  ['more values than anybody names', response({ values: Array.from({ length: 201 }, () => Buffer.alloc(6, 1)) })],
  ['an error that is not a list', message({ y: 'e', e: 5 })],
  ['an integer transaction', encodeBencode({ t: 5, y: 'q', q: 'ping', a: { id: ID } })],
  ['a transaction beyond all', encodeBencode({ t: Buffer.alloc(17), y: 'q', q: 'ping', a: { id: ID } })],
  ['no dictionary', encodeBencode([1])],
  ['deep nesting', Buffer.from(`d1:a${'l'.repeat(20)}${'e'.repeat(20)}e`)],
  ['more than a datagram', message({ y: 'q', q: 'ping', a: { id: ID }, z: Buffer.alloc(2_048) })]
])('the library never receives %s', (_, datagram) => {
  expect(checkKrpc(datagram, true)).toBe(undefined)
})

test('the library sees the fields that it reads, and no others', () => {
  const sent = query('get_peers', { info_hash: HASH, noseed: 1, scrape: 1, __proto__x: 1 })
  expect(Buffer.from(checkKrpc(sent, false)!)).toEqual(Buffer.from(query('get_peers', { info_hash: HASH })))
})

test('private addresses from a public node are left out', () => {
  const compact = (host: string): Uint8Array => Uint8Array.from([...host.split('.').map(Number), 0x1a, 0xe1])
  const [inner, outer] = [compact('192.168.1.1'), compact('8.8.8.8')]
  const named = response({ nodes: Buffer.concat([ID, inner, ID, outer]), values: [inner, outer] })
  const kept = (allowPrivate: boolean): unknown => decodeBencode(checkKrpc(named, allowPrivate)!)
  expect(kept(true)).toEqual(decodeBencode(named))
  expect(kept(false)).toEqual(decodeBencode(response({ nodes: Buffer.concat([ID, outer]), values: [outer] })))
})
