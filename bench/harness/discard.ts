import { connect, type Socket } from 'node:net'

const BUFFER_BYTES = 1 << 20

/**
 * Fetches over a Unix socket and discards the body, reading into one reused buffer to keep the client cheap. @returns seconds from the
 * request to the last byte. @throws if the body is shorter than announced
 */
export function fetchAndDiscard(socketPath: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let expected = 0
    let received = 0
    const begun = performance.now()
    const socket = connect({
      path: socketPath,
      onread: {
        buffer: Buffer.allocUnsafe(BUFFER_BYTES),
        callback: (count, buffer) => {
          if (expected === 0) {
            const head = Buffer.from(buffer.buffer, buffer.byteOffset, Math.min(count, 4096)).toString('latin1')
            const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head)?.[1]
            const body = head.indexOf('\r\n\r\n') + 4
            if (!head.startsWith('HTTP/1.1 200') || length === undefined || body < 4) {
              socket.destroy(new Error(`unexpected response: ${head.slice(0, 500)}`))
              return false
            }
            expected = body + Number(length)
          }
          received += count
          if (received >= expected) {
            resolve((performance.now() - begun) / 1000)
            socket.destroy()
          }
          return true
        }
      }
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error(`received ${received} of ${expected} bytes`)))
    socket.write(`GET ${path} HTTP/1.1\r\nHost: svc\r\n\r\n`)
  })
}

/** A stalled reader: requests a body and never reads it, beyond what the socket buffers hold. Destroy it when done. */
export function askAndStall(socketPath: string, path: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath)
    socket.once('error', reject)
    socket.once('readable', () => {
      socket.off('error', reject)
      socket.on('error', () => undefined)
      resolve(socket)
    })
    socket.write(`GET ${path} HTTP/1.1\r\nHost: svc\r\n\r\n`)
  })
}
