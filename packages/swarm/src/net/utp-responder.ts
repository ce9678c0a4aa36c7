import type { Socket } from 'node:dgram'
import { isPort } from '@svc/internal-net'
import { resetFor } from './utp-reset.ts'

/** Resets per second, a limit against floods of unsolicited datagrams. */
const MAX_RESETS_PER_SECOND = 200

/** Answers uTP connection requests with resets, up to a rate limit, and ignores all other datagrams. */
export class UtpResponder {
  readonly #socket: Socket
  #second = 0
  #sent = 0

  constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Answers one datagram. Its source is not trusted; it may even be port 0, to which nothing can be sent. */
  answer(packet: Uint8Array, from: { readonly address: string; readonly port: number }, nowMs: number): void {
    if (!isPort(from.port)) return
    const reset = resetFor(packet, nowMs)
    if (reset === undefined) return
    const second = Math.floor(nowMs / 1000)
    if (second !== this.#second) this.#sent = 0
    this.#second = second
    this.#sent += 1
    // Without a callback, the error of a single send (an unreachable network) would be thrown later; it does not
    // matter.
    if (this.#sent <= MAX_RESETS_PER_SECOND) this.#socket.send(reset, from.port, from.address, () => undefined)
  }
}
