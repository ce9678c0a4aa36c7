import { createConnection } from 'node:net'

/** Sends bytes as they are and gives everything that comes back until the peer closes. */
export function rawExchange(
  socketPath: string,
  bytes: string | Buffer,
  options: { readonly end?: boolean } = {}
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path: socketPath })
    let answer = ''
    socket.setTimeout(60_000, () => {
      reject(new Error(`nothing more, and no end of the answer; so far: ${answer}`))
      socket.destroy()
    })
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => (answer += chunk))
    // a peer that refuses may close while bytes are still on their way
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(answer))
    socket.write(bytes)
    if (options.end === true) socket.end()
  })
}

/** Status and envelope of the last response in a raw answer. */
export function envelopeOf(answer: string): {
  readonly status: number
  readonly code: string
  readonly headers: string
} {
  const at = answer.lastIndexOf('HTTP/1.1 ')
  const [head = '', body = ''] = answer.slice(at).split('\r\n\r\n')
  return {
    status: Number(head.slice(9, 12)),
    code: (JSON.parse(body) as { error: { code: string } }).error.code,
    headers: head
  }
}

/** Splits a raw answer into responses by their `Content-Length`. */
export function responsesOf(answer: string): { readonly status: number; readonly body: string }[] {
  const found: { status: number; body: string }[] = []
  let rest = answer
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n') + 4
    const head = rest.slice(0, end)
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
    found.push({ status: Number(head.slice(9, 12)), body: rest.slice(end, end + length) })
    rest = rest.slice(end + length)
  }
  return found
}

export const request = (target: string, more = ''): string => `GET ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
export function post(target: string, body: object): string {
  const text = JSON.stringify(body)
  return `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: ${text.length}\r\n\r\n${text}`
}
