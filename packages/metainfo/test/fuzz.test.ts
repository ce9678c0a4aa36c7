import { describeFuzz } from '@svc/testkit/fuzz'
import { BencodeDictionary, decodeBencode, encodeBencode } from '../src/bencode.ts'
import { MetainfoError } from '../src/errors.ts'
import { parseInfo } from '../src/info-dictionary.ts'
import { formatMagnet, parseMagnetTopics } from '../src/magnet.ts'
import { parsePieceLayers } from '../src/piece-layers.ts'
import { parseTorrent } from '../src/torrent-file.ts'
import { TORRENT_CASES } from './malformed-torrents.ts'

const expected = (error: unknown): string | undefined =>
  error instanceof MetainfoError ? `${error.code} ${error.reason}` : undefined
const torrents = TORRENT_CASES.map(({ bytes }) => bytes)
const valid = parseTorrent(TORRENT_CASES.find(({ name }) => name === 'hybrid')!.bytes).info
const KEYS = [
  '4:info',
  '9:file tree',
  '6:length',
  '11:pieces root32:',
  '12:meta versioni2e',
  '12:piece lengthi16384e',
  '4:name',
  '6:pieces',
  '12:piece layers',
  '0:',
  'd',
  'l',
  'e',
  'i0e',
  'i-0e',
  'i9223372036854775808e',
  '8:announce',
  '13:announce-list',
  '8:url-list',
  '7:privatei1e',
  '5:filesl',
  '4:pathl',
  '1:.',
  '2:..',
  '4:attr1:p',
  '99999999999:'
]
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

describeFuzz([
  {
    name: 'bencode',
    seeds: [
      ...torrents.slice(0, 12),
      'd1:ad2:bbi-12eee',
      'l4:spami0ee',
      encodeBencode({ a: [1, 'b', new Uint8Array(20)] })
    ],
    dictionary: KEYS,
    run: (input) => {
      const value = decodeBencode(input)
      return value instanceof BencodeDictionary ? 'dictionary' : Array.isArray(value) ? 'list' : typeof value
    },
    expected
  },
  {
    name: 'torrent-file',
    seeds: torrents,
    dictionary: KEYS,
    run: (input) => {
      const { info, pieceLayers, trackers, webseeds } = parseTorrent(input)
      const many = (count: number): number => Math.min(count, 4)
      return [info.files, pieceLayers.missing, trackers, webseeds].map(({ length }) => many(length)).join()
    },
    expected
  },
  {
    name: 'info-dictionary',
    seeds: [valid.infoBytes],
    dictionary: KEYS,
    run: (input) => {
      const { files, pieceLength } = parseInfo(input)
      return `${Math.min(files.length, 8)} ${pieceLength}`
    },
    expected
  },
  {
    name: 'piece-layers',
    seeds: ['de', encodeBencode({ [`${'x'.repeat(32)}`]: new Uint8Array(64) })],
    dictionary: KEYS,
    run: (input) => String(parsePieceLayers(input, valid).missing.length),
    expected
  },
  {
    name: 'magnet',
    seeds: [
      formatMagnet({
        infohash: new Uint8Array(32).fill(7),
        name: 'x',
        trackers: ['udp://t.example:1'],
        peers: ['127.0.0.1:1']
      }),
      `magnet:?xt=urn:btih:${'a'.repeat(40)}&dn=a%20b&tr=http%3A%2F%2Ft%2Fa&ws=https://w/x&x.pe=[::1]:1`
    ],
    dictionary: [
      '&xt=',
      'urn:btmh:1220',
      'urn:btih:',
      '&tr=',
      '&ws=',
      '&dn=',
      '&x.pe=',
      '%00',
      '%zz',
      '%',
      '%ff',
      '=',
      '&',
      '&xt.1=',
      'udp://',
      ':0'
    ],
    run: (input) => {
      const topics = parseMagnetTopics(decoder.decode(input))
      return Object.keys(topics).join()
    },
    expected
  }
])
