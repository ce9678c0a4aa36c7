import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MetainfoError } from '../src/errors.ts'
import { formatMagnet, type MagnetTopics, parseMagnet, parseMagnetTopics } from '../src/magnet.ts'
import { errorOf } from './error-of.ts'

const V2 = 'ab'.repeat(32)
const V1 = 'cd'.repeat(20)
const hex = (bytes: Uint8Array | undefined): string | undefined => bytes && Buffer.from(bytes).toString('hex')

test('a link with everything, numbered and repeated', () => {
  const magnet = parseMagnet(
    `magnet:?xt.1=urn:btmh:1220${V2.toUpperCase()}&xt.2=urn%3Abtih%3A${V1}&dn=a+b%20c&dn=second` +
      '&tr=http%3A%2F%2F127.0.0.1%2Fa%3Fx%3D1%26y%3D2&tr.2=udp://127.0.0.1:1&tr=udp://127.0.0.1:1' +
      '&ws=http://127.0.0.1/' +
      '&x.pe=127.0.0.1:6881&x.pe=[::1]:1&so=0-2&xt=urn:sha1:xyz&novalue&tr='
  )
  expect([hex(magnet.infohash), hex(magnet.infohashV1)]).toEqual([V2, V1])
  expect(magnet.name).toBe('a+b c')
  expect(magnet.trackers).toEqual(['http://127.0.0.1/a?x=1&y=2', 'udp://127.0.0.1:1'])
  expect(magnet.webseeds).toEqual(['http://127.0.0.1/'])
  expect(magnet.peers).toEqual(['127.0.0.1:6881', '[::1]:1'])
})

test('v1 topics in hex and base32 are for parseMagnetTopics', () => {
  expect(hex(parseMagnetTopics(`magnet:?xt=urn:btih:${V1}`).infohashV1)).toBe(V1)
  const base32 = parseMagnetTopics('magnet:?xt=urn:btih:AEBAGBAFAYDQQCIKBMGA2DQPCAIREEYU').infohashV1
  expect([...base32!]).toEqual(Array.from({ length: 20 }, (_, i) => i + 1))
  expect(errorOf(() => parseMagnet(`magnet:?xt=urn:btih:${V1}`))).toBe('E_MAGNET v1-only')
})

describe('refused', () => {
  test.each([
    ['scheme', ''],
    ['scheme', 'http://127.0.0.1/'],
    ['scheme', `magnet:xt=urn:btmh:1220${V2}`],
    ['no-topic', 'magnet:?'],
    ['no-topic', 'magnet:?dn=x&xt=urn:sha1:abc'],
    ['topic-format', `magnet:?xt=urn:btmh:1220${V2.slice(1)}`],
    ['topic-format', `magnet:?xt=urn:btmh:1114${V2}`],
    ['topic-format', `magnet:?xt=urn:btmh:1220${V2.slice(1)}g`],
    ['topic-format', `magnet:?xt=urn:btih:${V1}0`],
    ['topic-format', 'magnet:?xt=urn:btih:01189998819991197253011899988199'],
    ['topic-conflict', `magnet:?xt=urn:btmh:1220${V2}&xt=urn:btmh:1220${V2.replace('a', 'b')}`],
    ['encoding', `magnet:?xt=urn:btmh:1220${V2}&dn=%ff`],
    ['encoding', `magnet:?xt=urn:btmh:1220${V2}&tr=%zz`],
    ['too-long', `magnet:?xt=urn:btmh:1220${V2}&dn=${'a'.repeat(65_536)}`],
    ['hint-too-long', `magnet:?xt=urn:btmh:1220${V2}&tr=${'a'.repeat(2_049)}`],
    ['too-many-hints', `magnet:?xt=urn:btmh:1220${V2}${Array.from({ length: 1_001 }, (_, i) => `&ws=${i}`).join('')}`]
  ])('%s: %s', (reason, text) => {
    expect(errorOf(() => parseMagnet(text))).toBe(`E_MAGNET ${reason}`)
  })

  test('refuses values that a link cannot have', () => {
    expect(errorOf(() => formatMagnet({ name: 'x' }))).toBe('E_MAGNET no-topic')
    expect(errorOf(() => formatMagnet({ infohash: new Uint8Array(20) }))).toBe('E_MAGNET topic-format')
    expect(errorOf(() => formatMagnet({ infohash: new Uint8Array(32), name: '\ud800' }))).toBe('E_MAGNET encoding')
  })
})

const hints = fc.uniqueArray(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), { maxLength: 3 })
const magnets: fc.Arbitrary<MagnetTopics> = fc.record({
  infohash: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  infohashV1: fc.option(fc.uint8Array({ minLength: 20, maxLength: 20 }), { nil: undefined }),
  name: fc.option(fc.string({ unit: 'grapheme' }), { nil: undefined }),
  trackers: hints,
  webseeds: hints,
  peers: hints
})

test('property: parse inverts format', () => {
  fc.assert(
    fc.property(magnets, (magnet) => {
      expect(parseMagnet(formatMagnet(magnet))).toEqual(magnet)
    })
  )
})

test('property: any text is parsed or refused with a code', () => {
  const part = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('&', '=', 'xt', 'urn:btmh:1220', V2, V1, 'urn:btih:', '%', 'tr.1', 'x.pe')
  )
  fc.assert(
    fc.property(
      fc.array(part).map((parts) => `magnet:?${parts.join('')}`),
      (text) => {
        try {
          parseMagnetTopics(text)
        } catch (error) {
          expect(error).toBeInstanceOf(MetainfoError)
        }
      }
    )
  )
})
