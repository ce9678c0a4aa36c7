import { encodeBencode } from '@svc/metainfo'
import { expect, test } from 'vitest'
import { parseExtendedHandshake, parsePex } from '../../src/wire/extensions.ts'

test('an extended handshake may have its keys in any order, but none twice', () => {
  const handshake = parseExtendedHandshake(Buffer.from('d1:v5:other4:reqqi250e1:md6:ut_pexi2e11:ut_metadatai3eee'))
  expect(handshake).toMatchObject({ client: 'other', requestQueue: 250 })
  expect([...handshake.ids]).toEqual(expect.arrayContaining([['ut_metadata', 3]]))
  expect(() => parseExtendedHandshake(Buffer.from('d1:v1:a4:reqqi1e1:v1:be'))).toThrow(
    expect.objectContaining({ code: 'E_BENCODE' })
  )
})

test('a peer exchange may have its keys in any order, but none twice', () => {
  const added = Buffer.from([1, 2, 3, 4, 0, 80])
  const flags = encodeBencode({ 'added.f': Buffer.from([0]) }).subarray(1, -1)
  const addresses = encodeBencode({ added }).subarray(1, -1)
  expect(parsePex(Buffer.concat([Buffer.from('d'), flags, addresses, Buffer.from('e')]))).toEqual([
    expect.objectContaining({ host: '1.2.3.4', port: 80 })
  ])
})

test('requests are at most what the peer accepts and what we ask for, in whole blocks', () => {
  for (const [announced, asked] of [
    ['', 16_384],
    ['10:svc_maxreqi-1e', 16_384],
    ['10:svc_maxreqi16383e', 16_384],
    ['10:svc_maxreqi40000e', 32_768],
    ['10:svc_maxreqi131072e', 131_072],
    ['10:svc_maxreqi262144e', 262_144],
    ['10:svc_maxreqi1048576e', 262_144],
    ['10:svc_maxreqi4294967296e', 16_384]
  ] as const)
    expect(parseExtendedHandshake(Buffer.from(`d${announced}e`)).maxRequestBytes, announced).toBe(asked)
})
