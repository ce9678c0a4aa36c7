import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SwarmError } from '../../src/errors.ts'
import { WireDecoder, type WireSink } from '../../src/wire/decoder.ts'
import {
  BODY_BOUNDS,
  formatBitfield,
  formatBlockRef,
  formatExtended,
  formatHashes,
  formatHashRange,
  formatIndex,
  formatPieceHeader,
  formatSimple,
  KEEP_ALIVE,
  MAX_UNKNOWN_BYTES,
  MESSAGE,
  parseHashRange
} from '../../src/wire/messages.ts'

/** BEP 5: the port of a DHT node. */
const formatPort = (port: number): Uint8Array => Buffer.from([0, 0, 0, 3, MESSAGE.port, port >> 8, port & 255])

type Heard = string

class Recorder implements WireSink {
  readonly heard: Heard[] = []
  #block = ''
  refuse: number | undefined
  admits(id: number): boolean {
    return id !== this.refuse
  }
  message(id: number, body: Uint8Array): void {
    this.heard.push(`${id}:${Buffer.from(body).toString('hex')}`)
  }
  requested(piece: number, begin: number, length: number): void {
    const fields = [piece, begin, length].map((field) => field.toString(16).padStart(8, '0'))
    this.heard.push(`${MESSAGE.request}:${fields.join('')}`)
  }
  blockStart(piece: number, begin: number, length: number): void {
    this.#block = `block ${piece} ${begin} ${length}:`
  }
  blockData(fragment: Uint8Array): void {
    this.#block += Buffer.from(fragment).toString('hex')
  }
  blockEnd(): void {
    this.heard.push(this.#block)
  }
}

const u32 = fc.nat(0xffff_ffff)
const bytes = (max: number) => fc.uint8Array({ minLength: 1, maxLength: max })
const range = fc.record({
  root: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  baseLayer: u32,
  index: u32,
  length: u32,
  proofLayers: u32
})
/** A message and what its sink hears; of a keep-alive nothing. */
const message = fc.oneof(
  fc.constant([KEEP_ALIVE, undefined] as const),
  fc.constantFrom(0, 1, 2, 3, 14, 15).map((id) => [formatSimple(id), `${id}:`] as const),
  fc
    .tuple(fc.constantFrom(4, 13, 17), u32)
    .map(([id, piece]) => [formatIndex(id, piece), `${id}:${piece.toString(16).padStart(8, '0')}`] as const),
  bytes(300).map((bits) => [formatBitfield(bits), `5:${Buffer.from(bits).toString('hex')}`] as const),
  fc
    .tuple(fc.constantFrom(6, 8, 16), u32, u32, u32)
    .map(
      ([id, ...parts]) =>
        [
          formatBlockRef(id, ...parts),
          `${id}:${parts.map((part) => part.toString(16).padStart(8, '0')).join('')}`
        ] as const
    ),
  fc
    .tuple(u32, u32, bytes(5000))
    .map(
      ([piece, begin, block]) =>
        [
          Buffer.concat([formatPieceHeader(piece, begin, block.length), block]),
          `block ${piece} ${begin} ${block.length}:${Buffer.from(block).toString('hex')}`
        ] as const
    ),
  fc.nat(65_535).map((port) => [formatPort(port), `9:${port.toString(16).padStart(4, '0')}`] as const),
  fc
    .tuple(fc.nat(255), bytes(2000))
    .map(
      ([id, body]) =>
        [
          formatExtended(id, body),
          `20:${id.toString(16).padStart(2, '0')}${Buffer.from(body).toString('hex')}`
        ] as const
    ),
  range.map(
    (value) =>
      [
        formatHashRange(MESSAGE.hashRequest, value),
        `21:${Buffer.from(formatHashRange(21, value).subarray(5)).toString('hex')}`
      ] as const
  ),
  fc.tuple(range, fc.uint8Array({ minLength: 32, maxLength: 320 })).map(([value, hashes]) => {
    const whole = formatHashes(value, hashes)
    return [whole, `22:${Buffer.from(whole.subarray(5)).toString('hex')}`] as const
  })
)

/** The largest body of each kind of message, its id included. */
const LARGEST: Readonly<Record<number, number>> = {
  [MESSAGE.choke]: 1,
  [MESSAGE.unchoke]: 1,
  [MESSAGE.interested]: 1,
  [MESSAGE.notInterested]: 1,
  [MESSAGE.have]: 5,
  [MESSAGE.bitfield]: 262_145,
  [MESSAGE.request]: 13,
  [MESSAGE.piece]: 262_153,
  [MESSAGE.cancel]: 13,
  [MESSAGE.port]: 3,
  [MESSAGE.suggest]: 5,
  [MESSAGE.haveAll]: 1,
  [MESSAGE.haveNone]: 1,
  [MESSAGE.reject]: 13,
  [MESSAGE.allowedFast]: 5,
  [MESSAGE.extended]: 65_537,
  [MESSAGE.hashRequest]: 49,
  [MESSAGE.hashes]: 49 + 32 * (8_192 + 32),
  [MESSAGE.hashReject]: 49
}

describe('the decoder', () => {
  test('reads the same messages however the bytes are split', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), fc.array(fc.nat(200), { maxLength: 60 }), (messages, cuts) => {
        const stream = Buffer.concat(messages.map(([wire]) => wire))
        const recorder = new Recorder()
        const decoder = new WireDecoder(recorder)
        let at = 0
        for (const cut of cuts) {
          decoder.push(stream.subarray(at, at + cut))
          at += cut
        }
        decoder.push(stream.subarray(Math.min(at, stream.length)))
        expect(recorder.heard).toEqual(messages.flatMap(([, heard]) => heard ?? []))
      }),
      { numRuns: 300 }
    )
  })

  test('garbage is an error of the protocol or messages within bounds, nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 20 }), (chunks) => {
        const decoder = new WireDecoder(new Recorder())
        try {
          for (const chunk of chunks) decoder.push(chunk)
        } catch (error) {
          expect(error).toBeInstanceOf(SwarmError)
          expect((error as SwarmError).code).toBe('E_PROTOCOL')
        }
      }),
      { numRuns: 500 }
    )
  })

  test('lengths are limited by id before any byte of the body arrives', () => {
    for (let id = 0; id < 24; id += 1) {
      const bounds = BODY_BOUNDS[id]
      // docs/budgets.md
      expect(bounds?.[1], `the largest of ${id}`).toBe(LARGEST[id])
      if (bounds === undefined) continue
      for (const length of [bounds[0] - 1, bounds[1] + 1]) {
        if (length < 1) continue
        const head = Buffer.alloc(5)
        head.writeUInt32BE(length, 0)
        head[4] = id
        // alone, and with more bytes behind it
        for (const bytes of [head, Buffer.concat([head, Buffer.alloc(64)])])
          expect(() => new WireDecoder(new Recorder()).push(bytes), `${id} of ${length}`).toThrow(
            expect.objectContaining({ code: 'E_PROTOCOL', reason: 'message-length' })
          )
      }
    }
  })

  test('unknown messages are limited too', () => {
    expect(MAX_UNKNOWN_BYTES).toBe(2 ** 20 + 13)
    const head = Buffer.alloc(5)
    head[4] = 99
    head.writeUInt32BE(MAX_UNKNOWN_BYTES, 0)
    new WireDecoder(new Recorder()).push(head)
    head.writeUInt32BE(MAX_UNKNOWN_BYTES + 1, 0)
    expect(() => new WireDecoder(new Recorder()).push(head)).toThrow(
      expect.objectContaining({ code: 'E_PROTOCOL', reason: 'message-length' })
    )
  })

  test('a message that its owner does not accept is refused at its id', () => {
    const recorder = new Recorder()
    recorder.refuse = MESSAGE.bitfield
    expect(() => new WireDecoder(recorder).push(formatBitfield(new Uint8Array(10)).subarray(0, 5))).toThrow(SwarmError)
  })

  test('unknown messages are skipped', () => {
    const recorder = new Recorder()
    new WireDecoder(recorder).push(
      Buffer.concat([Buffer.from([0, 0, 0, 4, 99, 1, 2, 3]), Buffer.from([0, 0, 0, 1, 98]), formatSimple(1)])
    )
    expect(recorder.heard).toEqual(['1:'])
  })
})

test('hash ranges round-trip', () => {
  fc.assert(
    fc.property(range, (value) => {
      const back = parseHashRange(formatHashRange(MESSAGE.hashRequest, value).subarray(5))
      expect({ ...back, root: [...back.root] }).toEqual({ ...value, root: [...value.root] })
    })
  )
})
