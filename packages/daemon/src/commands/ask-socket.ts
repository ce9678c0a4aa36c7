import { request } from 'node:http'
import { type Clock, systemClock } from '@svc/internal-clock'

/** Orchestrators ask again; a daemon that takes longer hangs. */
const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 16 << 20

/** Asks the daemon at a socket; GET unless another method is given. @throws Error when no whole answer comes in time */
export function askSocket(
  socketPath: string,
  path: string,
  {
    method = 'GET',
    body = '',
    clock = systemClock
  }: { readonly method?: string; readonly body?: string; readonly clock?: Clock } = {}
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { Host: 'svcd', 'Content-Length': Buffer.byteLength(body) }
    const call = request({ socketPath, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      let sizeBytes = 0
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        sizeBytes += chunk.length
        if (sizeBytes > MAX_ANSWER_BYTES) call.destroy(new Error('its answer is too long'))
      })
      response.on('error', reject)
      response.on('end', () => {
        timer.cancel()
        resolve({ status: response.statusCode!, text: Buffer.concat(chunks).toString('utf8') })
      })
    })
    const timer = clock.after(TIMEOUT_MS, () => call.destroy(new Error('it took too long')))
    call.on('error', (error) => {
      timer.cancel()
      reject(error)
    })
    call.end(body)
  })
}
