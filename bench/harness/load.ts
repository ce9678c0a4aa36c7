import { spawn } from 'node:child_process'
import type { LoadRequest, LoadResult } from './load-client.ts'

const CLIENT = new URL('./load-client.ts', import.meta.url).pathname

export interface Load {
  /** Ends it early. */
  stop(): void
  readonly result: Promise<LoadResult>
}

/** Starts a load client; what it may do is bounded in time and count. */
export function startLoad(request: LoadRequest): Load {
  const child = spawn(process.execPath, [CLIENT, JSON.stringify(request)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc']
  })
  const result = new Promise<LoadResult>((resolve, reject) => {
    child.once('message', (message) => resolve(message as LoadResult))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the load client ended with ${code}`)))
  })
  return { stop: () => void (child.connected && child.send('stop')), result }
}
