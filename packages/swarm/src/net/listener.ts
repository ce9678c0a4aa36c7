import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import { guarded, reportDefect } from './guarded.ts'
import { UtpResponder } from './utp-responder.ts'

/**
 * The one TCP listener of an engine, and beside it, on the same port where that is free, the UDP socket that sends uTP
 * requests back to TCP.
 */
export class Listener {
  readonly #server: Server
  readonly #udp: UdpSocket | undefined
  readonly port: number

  private constructor(server: Server, udp: UdpSocket | undefined, port: number) {
    this.#server = server
    this.#udp = udp
    this.port = port
  }

  /** @throws the system's error when the port is taken. */
  static async open(options: {
    readonly host: string
    readonly port: number
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
    // Errors of single connections (EMFILE and the like) must not end the process.
    server.on('error', () => undefined)
    const { port } = server.address() as { port: number }
    return new Listener(server, await openUdp(options.host, port), port)
  }

  async close(): Promise<void> {
    await Promise.all([
      new Promise<void>((resolve) => this.#server.close(() => resolve())),
      new Promise<void>((resolve) => (this.#udp === undefined ? resolve() : this.#udp.close(() => resolve())))
    ])
  }
}

/** Undefined when the UDP port is taken by somebody else: peers that try uTP first take seconds longer to connect then. */
function openUdp(host: string, port: number): Promise<UdpSocket | undefined> {
  return new Promise((resolve) => {
    const udp = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    const responder = new UtpResponder(udp)
    udp.on(
      'message',
      guarded((packet: Uint8Array, from: RemoteInfo) => responder.answer(packet, from, performance.now()))
    )
    udp.once('error', () => resolve(undefined))
    udp.bind(port, host, () => {
      udp.on('error', () => undefined)
      resolve(udp)
    })
  })
}
