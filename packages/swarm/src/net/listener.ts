import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '@svc/internal-clock'
import { reportDefect } from './guarded.ts'
import { refuseUtp } from './utp-responder.ts'

/** An engine's TCP listener. A UDP socket on the same port, if it is free, refuses uTP, so that peers use TCP at once. */
export class Listener {
  readonly #server: Server
  readonly #udp: UdpSocket | undefined
  readonly port: number

  private constructor(server: Server, udp: UdpSocket | undefined, port: number) {
    this.#server = server
    this.#udp = udp
    this.port = port
  }

  /** @throws the system's error when the port is unavailable. */
  static async open(options: {
    readonly host: string
    readonly port: number
    readonly clock: Clock
    readonly accept: (socket: Socket) => void
  }): Promise<Listener> {
    const server = createServer({ noDelay: true }, (socket) => {
      try {
        options.accept(socket)
      } catch (error) {
        socket.destroy()
        reportDefect(error)
      }
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(options.port, options.host, () => {
        server.off('error', reject)
        resolve()
      })
    })
    // errors of single connections (such as EMFILE) must not end the process.
    server.on('error', () => undefined)
    const { port } = server.address() as { port: number }
    return new Listener(server, await openUdp(options.host, port, options.clock), port)
  }

  async close(): Promise<void> {
    await Promise.all([
      new Promise<void>((resolve) => this.#server.close(() => resolve())),
      new Promise<void>((resolve) => (this.#udp === undefined ? resolve() : this.#udp.close(() => resolve())))
    ])
  }
}

/** Undefined when another program has the UDP port: peers that try uTP first then take seconds longer to connect. */
function openUdp(host: string, port: number, clock: Clock): Promise<UdpSocket | undefined> {
  return new Promise((resolve) => {
    const udp = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    refuseUtp(udp, clock)
    const failed = (): void => void udp.close(() => resolve(undefined))
    udp.once('error', failed)
    udp.bind(port, host, () => {
      udp.off('error', failed)
      udp.on('error', () => undefined)
      resolve(udp)
    })
  })
}
