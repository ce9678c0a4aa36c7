import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SwarmError } from '../../src/errors.ts'
import { MseInitiator, MseResponder, type MseResult, mseKeyOf } from '../../src/wire/mse.ts'

/** Hands bytes over in pieces of `step`. */
function feed(
  push: (bytes: Uint8Array) => { write?: Uint8Array; done?: MseResult },
  bytes: Uint8Array,
  step: number
): { write: Uint8Array; done: MseResult | undefined } {
  const out: Uint8Array[] = []
  let done: MseResult | undefined
  for (let at = 0; at < bytes.length; at += step) {
    const answer = push(bytes.subarray(at, at + step))
    if (answer.write !== undefined) out.push(answer.write)
    done ??= answer.done
  }
  return { write: Buffer.concat(out), done }
}

test('both sides of the handshake agree, however the bytes are split, and select plaintext', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), fc.integer({ min: 1, max: 700 }), (infohash, step) => {
      const initiator = new MseInitiator(infohash)
      const responder = new MseResponder((key) => (key === mseKeyOf(infohash) ? infohash : undefined))
      const first = feed((bytes) => responder.push(bytes), initiator.start(), step)
      expect(first.done).toBeUndefined()
      const second = feed((bytes) => initiator.push(bytes), first.write, step)
      const third = feed((bytes) => responder.push(bytes), second.write, step)
      expect(third.done).toEqual({ encrypt: undefined, decrypt: undefined, rest: Buffer.alloc(0) })
      const last = feed((bytes) => initiator.push(bytes), third.write, step)
      expect(last.done).toMatchObject({ encrypt: undefined, decrypt: undefined })
    }),
    { numRuns: 25 }
  )
})

test('an unknown torrent ends it', () => {
  const initiator = new MseInitiator(new Uint8Array(20).fill(1))
  const responder = new MseResponder(() => undefined)
  const { write } = responder.push(initiator.start())
  const offer = initiator.push(write!).write!
  expect(() => responder.push(offer)).toThrow(expect.objectContaining({ code: 'E_PROTOCOL', reason: 'encryption' }))
})

test('garbage ends it within the limit of its padding', () => {
  const responder = new MseResponder(() => undefined)
  expect(() => {
    for (let index = 0; index < 30; index += 1) responder.push(randomBytes(100))
  }).toThrow(SwarmError)
})
