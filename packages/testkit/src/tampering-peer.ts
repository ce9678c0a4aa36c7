import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** Message ids of BEP 3 and BEP 52. */
export const PEER_MESSAGE = { bitfield: 5, piece: 7, extended: 20, hashes: 22, hashReject: 23, haveAll: 14 } as const

const HANDSHAKE_BYTES = 68

/**
 * Changes a message of the honest peer: returns other bytes (including the length prefix), 'drop', or undefined for no
 * change. `message` starts with the length prefix.
 */
export type Tamper = (message: Buffer, id: number | undefined) => Buffer | 'drop' | undefined

export interface TamperingPeer {
  readonly address: string
  /** Number of connections accepted. */
  readonly connections: number
  /** Number of bytes forwarded to clients. */
  readonly bytes: number
  /** Resolves when this many bytes were forwarded. */
  passedOn(bytes: number): Promise<void>
  close(): Promise<void>
}

/**
 * A peer that sends bad data: forwards an honest peer's messages with changes. Supports plain connections only, as our
 * engine opens them. Forwards nothing before `ready`.
 */
export async function startTamperingPeer(
  honest: string,
  tamper: Tamper = () => undefined,
  ready: Promise<unknown> = Promise.resolve()
): Promise<TamperingPeer> {
  const [host, port] = honest.split(':')
  const sockets = new Set<Socket>()
  let connections = 0
  let passed = 0
  const waiters = new Set<{ readonly bytes: number; readonly resolve: () => void }>()
  const server: Server = createServer((near) => {
    connections += 1
    const far = connect(Number(port), host)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    void ready.then(() => near.on('data', (bytes) => far.write(bytes)))
    let waiting = Buffer.alloc(0)
    let greeted = false
    far.on('data', (bytes) => {
      waiting = Buffer.concat([waiting, bytes])
      const out: Buffer[] = []
      if (!greeted && waiting.length >= HANDSHAKE_BYTES) {
        greeted = true
        out.push(waiting.subarray(0, HANDSHAKE_BYTES))
        waiting = waiting.subarray(HANDSHAKE_BYTES)
      }
      while (greeted && waiting.length >= 4 && waiting.length >= 4 + waiting.readUInt32BE(0)) {
        const end = 4 + waiting.readUInt32BE(0)
        const message = Buffer.from(waiting.subarray(0, end))
        waiting = waiting.subarray(end)
        const changed = tamper(message, end > 4 ? message[4] : undefined) ?? message
        if (changed !== 'drop') out.push(changed)
      }
      for (const each of out) {
        passed += each.length
        near.write(each)
      }
      for (const waiter of waiters) {
        if (passed < waiter.bytes) continue
        waiters.delete(waiter)
        waiter.resolve()
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    get connections() {
      return connections
    },
    get bytes() {
      return passed
    },
    passedOn: (bytes) =>
      passed >= bytes ? Promise.resolve() : new Promise((resolve) => waiters.add({ bytes, resolve })),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}
