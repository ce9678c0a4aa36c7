import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { FakeHubFault } from './fake-hub-faults.ts'

/** Sends a body as the fault requires: whole, cut, stalled, dripped or with one bit flipped. */
export async function sendBody(
  response: ServerResponse,
  chunks: Iterable<Uint8Array>,
  fault: FakeHubFault | undefined,
  onSent: (bytes: number) => void
): Promise<void> {
  let sent = 0
  response.flushHeaders()
  const stopAt = fault?.kind === 'cut' || fault?.kind === 'stall' ? fault.afterBytes : Infinity
  for (const whole of chunks) {
    for (const piece of steps(whole, fault?.kind === 'drip' ? fault.stepBytes : whole.length)) {
      let chunk = piece.subarray(0, Math.max(0, stopAt - sent))
      if (fault?.kind === 'wrong-bytes') chunk = flipped(chunk, (fault.atByte ?? 0) - sent)
      if (chunk.length > 0) {
        const room = response.write(chunk)
        sent += chunk.length
        onSent(chunk.length)
        if (!room && !response.destroyed) await drained(response)
      }
      if (response.destroyed) return
      if (chunk.length < piece.length) {
        // the bytes before the cut must be sent first, or the cut would be elsewhere.
        if (fault?.kind === 'cut') setImmediate(() => response.socket?.destroySoon())
        return
      }
      if (fault?.kind === 'drip') await delay(fault.everyMs)
    }
  }
  response.end()
}

function* steps(chunk: Uint8Array, stepBytes: number): Generator<Uint8Array> {
  for (let at = 0; at < chunk.length; at += stepBytes) yield chunk.subarray(at, at + stepBytes)
}

function flipped(chunk: Uint8Array, at: number): Uint8Array {
  if (at < 0 || at >= chunk.length) return chunk
  const copy = Uint8Array.from(chunk)
  copy[at] = (copy[at] as number) ^ 1
  return copy
}

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      response.off('drain', done)
      response.off('close', done)
      resolve()
    }
    response.on('drain', done)
    response.on('close', done)
  })
