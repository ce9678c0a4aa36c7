import { Agent, request } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'

/** Short enough to time a job of a second, long enough not to load the daemon. */
const POLL_MS = 20

export interface Job {
  readonly id: string
  readonly state: string
  readonly error?: { readonly code: string; readonly message: string }
  readonly result?: {
    readonly manifests: readonly string[]
    readonly skipped: number
    readonly warnings?: readonly string[]
  }
}

/** A minimal client of the management API, comparable to the clients of the other measured programs. */
export class Api {
  readonly socketPath: string
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4 })

  constructor(socketPath: string) {
    this.socketPath = socketPath
  }

  close(): void {
    this.#agent.destroy()
  }

  get(path: string): Promise<unknown> {
    return this.#send('GET', path)
  }

  post(path: string, body: object): Promise<unknown> {
    return this.#send('POST', path, JSON.stringify(body))
  }

  /** Runs a job to completion. @returns seconds from the request until polling sees the end. @throws if the job fails */
  async job(path: string, body: object): Promise<{ readonly seconds: number; readonly job: Job }> {
    const begun = performance.now()
    let job = (await this.post(path, body)) as Job
    while (job.state === 'waiting' || job.state === 'fetching') {
      await delay(POLL_MS)
      job = (await this.get(`/v1/jobs/${job.id}`)) as Job
    }
    if (job.state !== 'done') throw new Error(`${path}: ${job.error?.code}: ${job.error?.message}`)
    return { seconds: (performance.now() - begun) / 1000, job }
  }

  #send(method: string, path: string, body?: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const sent = request(
        { socketPath: this.socketPath, method, path, agent: this.#agent, headers: { host: 'svc' } },
        (response) => {
          const chunks: Buffer[] = []
          response.on('data', (chunk: Buffer) => chunks.push(chunk))
          response.on('error', reject)
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString()
            const { statusCode = 0 } = response
            if (statusCode >= 300) reject(new Error(`${method} ${path}: ${statusCode} ${text.slice(0, 500)}`))
            else resolve(JSON.parse(text))
          })
        }
      )
      sent.on('error', reject)
      sent.end(body)
    })
  }
}
