import { get } from 'node:http'
import type { Clock, Timer } from '@svc/internal-clock'

/** How long a router may take to answer, in milliseconds. */
const ANSWER_MS = 10_000
/** After this, a router that did not answer is told again, in milliseconds. */
const RETRY_MS = 30_000

/** The router of llama-server: `GET /models?reload=1` makes it read its folder and its preset again. */
export class LlamaRouter {
  readonly #url: URL
  readonly #clock: Clock
  readonly #closing = new AbortController()
  #isStale = false
  #telling: Promise<void> | undefined
  #retry: Timer | undefined
  /** Why it does not know of the latest change. */
  problem: string | undefined

  /** @param url of the server, such as `http://127.0.0.1:8080` */
  constructor(url: string, clock: Clock) {
    this.#url = new URL('models?reload=1', url.endsWith('/') ? url : `${url}/`)
    this.#clock = clock
  }

  /** Tells it that its folder has changed; one request at a time. Resolves once it knows, or {@link problem} does. */
  changed(): Promise<void> {
    this.#isStale = true
    return (this.#telling ??= this.#tell())
  }

  close(): void {
    this.#closing.abort()
    this.#retry?.cancel()
  }

  async #tell(): Promise<void> {
    this.#retry?.cancel()
    try {
      while (this.#isStale) {
        this.#isStale = false
        await this.#reload()
      }
      this.problem = undefined
    } catch (error) {
      if (this.#closing.signal.aborted) return
      this.problem = `llama-server at ${this.#url.origin} was not told: ${(error as Error).message}`
      this.#retry = this.#clock.after(RETRY_MS, () => void this.changed())
    } finally {
      this.#telling = undefined
    }
  }

  #reload(): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const request = get(this.#url, { agent: false, signal: this.#closing.signal }, (response) => {
        const { statusCode = 0 } = response
        // its list of models is of no use here
        response.destroy()
        if (statusCode === 200) resolve()
        else reject(new Error(`it answered ${statusCode}`))
      })
      request.on('error', (error: NodeJS.ErrnoException) => {
        // one that does not run reads its folder when it starts
        if (error.code === 'ECONNREFUSED') resolve()
        else reject(error)
      })
      const late = this.#clock.after(ANSWER_MS, () => request.destroy(new Error('it did not answer')))
      request.on('close', () => late.cancel())
    })
  }
}
