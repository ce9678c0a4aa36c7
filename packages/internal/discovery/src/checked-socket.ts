import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { EventEmitter } from 'node:events'
import { isPort } from '@svc/internal-net'

/**
 * A UDP socket in the shape that the DHT library uses. It sees only datagrams that `check` passes, as `check` returns them,
 * and only from senders that can be answered; what it sends to an impossible port fails by callback instead of a throw.
 */
export class CheckedSocket extends EventEmitter {
  readonly #socket: Socket
  #refused = 0

  constructor(check: (datagram: Uint8Array) => Uint8Array | undefined) {
    super()
    this.#socket = createSocket('udp4')
    this.#socket.on('message', (datagram, sender: RemoteInfo) => {
      const checked = isPort(sender.port) ? check(datagram) : undefined
      if (checked === undefined) this.#refused += 1
      else this.emit('message', Buffer.from(checked.buffer, checked.byteOffset, checked.byteLength), sender)
    })
    for (const event of ['error', 'listening', 'close'] as const) {
      this.#socket.on(event, (...rest: readonly unknown[]) => this.emit(event, ...rest))
    }
  }

  /** Datagrams that were dropped. */
  get refused(): number {
    return this.#refused
  }

  bind(port: number, host: string, listening?: () => void): void {
    this.#socket.bind(port, host, listening)
  }

  address(): ReturnType<Socket['address']> {
    return this.#socket.address()
  }

  send(
    bytes: Uint8Array,
    offset: number,
    length: number,
    port: number,
    host: string,
    done: (error: Error | null) => void
  ): void {
    if (!isPort(port)) return void queueMicrotask(() => done(new RangeError(`nobody can be reached at port ${port}`)))
    this.#socket.send(bytes, offset, length, port, host, done)
  }

  close(): void {
    this.#socket.close()
  }
}
