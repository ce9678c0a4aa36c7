import type { Socket } from 'node:dgram'
import { isPort } from '@svc/internal-net'
import { resetFor } from './utp-reset.ts'

/** Answers per second: an unsolicited flood is not worth more. */
const MAX_RESETS_PER_SECOND = 200

/** Sends uTP connection requests back to TCP, within a budget; says nothing to anything else. */
export class UtpResponder {
  readonly #socket: Socket
  #second = 0
  #sent = 0

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Answers one datagram. Its source is whatever the sender wrote there: port 0, too, which nothing can be sent to. */
  answer(packet: Uint8Array, from: { readonly address: string; readonly port: number }, nowMs: number): void {
    if (!isPort(from.port)) return
    const reset = resetFor(packet)
    if (reset === undefined) return
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#second) this.#sent = 0
    this.#second = second
    this.#sent += 1
    // Errors of a single send (an unreachable network) are nobody's business; with a callback they are not thrown later.
    if (this.#sent <= MAX_RESETS_PER_SECOND) this.#socket.send(reset, from.port, from.address, () => undefined)
  }
}
