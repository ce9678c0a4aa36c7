import type { IncomingMessage } from 'node:http'

/** Why a body was refused. The rest of it is not read. */
export class BodyError extends Error {
  override readonly name = 'BodyError'
  readonly problem: 'too-large' | 'other-length' | 'broken' | 'not-wanted'

  constructor(problem: BodyError['problem'], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.problem = problem
  }
}

const WITHOUT_BODY = new Set(['GET', 'HEAD', 'TRACE'])

/**
 * Reads a request's body, of which at most `maxBytes` are held, and no more once `isWanted` has refused a part of it.
 * @returns undefined if the method has no body or none was announced. @throws BodyError
 */
export async function readRequestBody(
  request: IncomingMessage,
  maxBytes: number,
  isWanted?: (part: Uint8Array) => boolean
): Promise<Uint8Array | undefined> {
  const { method = '', headers } = request
  if (WITHOUT_BODY.has(method)) return undefined
  const announced = headers['content-length']
  if (headers['transfer-encoding'] === undefined && (announced === undefined || announced === '0')) return undefined
  return collect(request, maxBytes, announced === undefined ? undefined : Number(announced), isWanted)
}

function collect(
  request: IncomingMessage,
  maxBytes: number,
  announced: number | undefined,
  isWanted: ((part: Uint8Array) => boolean) | undefined
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const tooLarge = (): BodyError =>
      new BodyError('too-large', `the body is larger than the ${maxBytes} bytes that this path takes`)
    if (announced !== undefined && announced > maxBytes) return reject(tooLarge())
    const chunks: Buffer[] = []
    let received = 0
    const over = (): void => {
      request.off('data', onData).off('end', onEnd).off('error', onError)
    }
    const onData = (chunk: Buffer): void => {
      received += chunk.length
      if (received > maxBytes) {
        over()
        reject(tooLarge())
      } else if (isWanted?.(chunk) === false) {
        over()
        reject(new BodyError('not-wanted', 'this path does not accept such a body'))
      } else chunks.push(chunk)
    }
    const onEnd = (): void => {
      over()
      if (announced === undefined || announced === received) return resolve(Buffer.concat(chunks, received))
      reject(new BodyError('other-length', 'the body does not have the length in Content-Length'))
    }
    const onError = (cause: Error): void => {
      over()
      reject(new BodyError('broken', 'the body ended early', cause))
    }
    request.on('data', onData).on('end', onEnd).on('error', onError)
  })
}
