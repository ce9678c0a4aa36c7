import { MetainfoError } from '@svc/metainfo'
import { describeFuzz } from '@svc/testkit/fuzz'
import { SwarmError } from '../../src/errors.ts'
import { WireDecoder } from '../../src/wire/decoder.ts'
import {
  formatExtendedHandshake,
  formatPex,
  parseExtendedHandshake,
  parseMetadataMessage,
  parsePex
} from '../../src/wire/extensions.ts'
import { tryParseHandshake } from '../../src/wire/handshake.ts'
import {
  formatBitfield,
  formatBlockRef,
  formatExtended,
  formatIndex,
  formatPieceHeader,
  formatSimple,
  MESSAGE
} from '../../src/wire/messages.ts'

/** BEP 5: the port of a DHT node. */
const formatPort = (port: number): Uint8Array => Buffer.from([0, 0, 0, 3, MESSAGE.port, port >> 8, port & 255])

const expected = (error: unknown): string | undefined =>
  error instanceof SwarmError || error instanceof MetainfoError ? `${error.code} ${error.reason}` : undefined
const KEYS = [
  'd',
  'e',
  '1:md',
  '11:ut_metadatai1e',
  '6:ut_pexi2e',
  '4:reqqi250e',
  '1:v',
  '13:metadata_sizei',
  '8:msg_typei0e',
  '5:piecei0e',
  '5:added',
  '6:added6'
]

describeFuzz([
  {
    name: 'wire-messages',
    seeds: [
      Buffer.concat([formatSimple(MESSAGE.unchoke), formatIndex(MESSAGE.have, 3), formatBitfield(new Uint8Array(2))]),
      Buffer.concat([formatBlockRef(MESSAGE.request, 1, 0, 16_384), formatPort(6881)]),
      Buffer.concat([formatPieceHeader(0, 0, 4), Buffer.from('data')]),
      formatExtended(0, Buffer.from('d1:md11:ut_metadatai1eee'))
    ],
    dictionary: [
      Buffer.alloc(4),
      Buffer.from([0, 0, 0, 1, 2]),
      Buffer.from([0, 0, 0, 13, 6]),
      Buffer.from([0xff, 0xff, 0xff, 0xff, 20])
    ],
    run: (input) => {
      const seen = new Set<string>()
      let held = 0
      const decoder = new WireDecoder({
        message: (id: number, body: Uint8Array) => {
          held += body.length
          seen.add(String(id))
        },
        requested: () => seen.add('request'),
        admits: () => true,
        blockStart: () => seen.add('block'),
        blockData: () => undefined,
        blockEnd: () => seen.add('end')
      } as never)
      // in uneven fragments, as a network delivers them.
      for (let at = 0, step = 1; at < input.length; at += step, step = (step * 7 + 3) % 251) {
        decoder.push(input.subarray(at, at + step))
        if (step === 0) step = 1
      }
      if (held > input.length) throw new Error('more than was sent')
      return [...seen].sort().join()
    },
    expected
  },
  {
    name: 'extended-handshake',
    seeds: [
      'd1:md11:ut_metadatai1e6:ut_pexi2ee4:reqqi250e1:v3:abce',
      Buffer.from(formatExtendedHandshake({ clientName: 'x' } as never))
    ],
    dictionary: KEYS,
    run: (input) => Object.keys(parseExtendedHandshake(input)).join(),
    expected
  },
  {
    name: 'metadata-message',
    seeds: ['d8:msg_typei0e5:piecei0ee', 'd8:msg_typei1e5:piecei0e10:total_sizei5ee12345'],
    dictionary: KEYS,
    run: (input) => String(parseMetadataMessage(input)?.kind),
    expected
  },
  {
    name: 'peer-exchange',
    seeds: [formatPex([{ host: '1.2.3.4', port: 5 }], []), 'd5:added6:1234567:added.f1:xe'],
    dictionary: KEYS,
    run: (input) => String(Math.min(parsePex(input).length, 3)),
    expected
  },
  {
    name: 'handshake',
    seeds: [Buffer.concat([Buffer.from('\x13BitTorrent protocol'), Buffer.alloc(48)])],
    dictionary: ['\x13BitTorrent protocol'],
    maxBytes: 256,
    run: (input) => String(tryParseHandshake(input) !== undefined),
    expected
  }
])
