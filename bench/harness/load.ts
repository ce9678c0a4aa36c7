import { spawn } from 'node:child_process'
import type { LoadRequest, LoadResult } from './load-client.ts'

const CLIENT = new URL('./load-client.ts', import.meta.url).pathname

export interface Load {
  /** Stops the load early. */
  stop(): void
  readonly result: Promise<LoadResult>
}

/** Starts a load client, which stops after a time or a number of requests. */
export function startLoad(request: LoadRequest): Load {
  const child = spawn(process.execPath, [CLIENT, JSON.stringify(request)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc']
  })
  const result = new Promise<LoadResult>((resolve, reject) => {
    child.once('message', (message) => resolve(message as LoadResult))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the load client exited with ${code}`)))
  })
  return { stop: () => void (child.connected && child.send('stop')), result }
}
