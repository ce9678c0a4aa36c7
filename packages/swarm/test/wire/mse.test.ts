import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SwarmError } from '../../src/errors.ts'
import { type ByteScript, IncomingBytes } from '../../src/wire/byte-script.ts'
import { initiateMse, type MseResult, mseKeyOf, respondMse } from '../../src/wire/mse.ts'

/** One side of the handshake. */
function side(script: (incoming: IncomingBytes, send: (bytes: Uint8Array) => void) => ByteScript<MseResult>) {
  const incoming = new IncomingBytes()
  const out: Uint8Array[] = []
  const running = script(incoming, (bytes) => out.push(bytes))
  return {
    push(bytes: Uint8Array): { write: Uint8Array; done: MseResult | undefined } {
      incoming.add(bytes)
      const { value } = running.next()
      return { write: Buffer.concat(out.splice(0)), done: value ?? undefined }
    }
  }
}

/** Hands bytes over in pieces of `step`. */
function feed(
  push: (bytes: Uint8Array) => { write: Uint8Array; done: MseResult | undefined },
  bytes: Uint8Array,
  step: number
): { write: Uint8Array; done: MseResult | undefined } {
  const out: Uint8Array[] = []
  let done: MseResult | undefined
  for (let at = 0; at < bytes.length; at += step) {
    const answer = push(bytes.subarray(at, at + step))
    out.push(answer.write)
    done ??= answer.done
  }
  return { write: Buffer.concat(out), done }
}

test('both sides of the handshake agree, however the bytes are split, and select plaintext', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), fc.integer({ min: 1, max: 700 }), (infohash, step) => {
      const initiator = side((incoming, send) => initiateMse(incoming, send, infohash))
      const responder = side((incoming, send) =>
        respondMse(incoming, send, (key) => (key === mseKeyOf(infohash) ? infohash : undefined))
      )
      const first = feed((bytes) => responder.push(bytes), initiator.push(new Uint8Array(0)).write, step)
      expect(first.done).toBeUndefined()
      const second = feed((bytes) => initiator.push(bytes), first.write, step)
      const third = feed((bytes) => responder.push(bytes), second.write, step)
      expect(third.done).toEqual({ rest: Buffer.alloc(0) })
      const last = feed((bytes) => initiator.push(bytes), third.write, step)
      expect(last.done).toEqual({ rest: expect.anything() })
    }),
    { numRuns: 25 }
  )
})

test('an unknown torrent ends it', () => {
  const initiator = side((incoming, send) => initiateMse(incoming, send, new Uint8Array(20).fill(1)))
  const responder = side((incoming, send) => respondMse(incoming, send, () => undefined))
  const { write } = responder.push(initiator.push(new Uint8Array(0)).write)
  const offer = initiator.push(write!).write
  expect(() => responder.push(offer)).toThrow(expect.objectContaining({ code: 'E_PROTOCOL', reason: 'encryption' }))
})

test('garbage ends it within the limit of its padding', () => {
  const responder = side((incoming, send) => respondMse(incoming, send, () => undefined))
  expect(() => {
    for (let index = 0; index < 30; index += 1) responder.push(randomBytes(100))
  }).toThrow(SwarmError)
})
