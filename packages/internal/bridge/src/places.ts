import type { Socket } from 'node:net'

/** Places for connections: while all are taken, the oldest goes for a newcomer. */
export class Places {
  readonly #limit: number
  readonly #held = new Set<Socket>()

  constructor(limit: number) {
    this.#limit = limit
  }

  add(socket: Socket): void {
    if (this.#held.has(socket)) return
    const [oldest] = this.#held
    if (this.#held.size >= this.#limit) {
      this.#held.delete(oldest!)
      oldest!.destroy()
    }
    this.#held.add(socket)
    socket.once('close', () => this.#held.delete(socket))
  }

  delete(socket: Socket): void {
    this.#held.delete(socket)
  }
}
