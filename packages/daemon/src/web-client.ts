import { Lazy } from '@svc/internal-concurrency'
import { loadHttpClient } from '@svc/internal-net'
import type { Dispatcher, request } from 'undici'

/** Loaded with the first request. */
const undici = (): Promise<typeof import('undici')> => loadHttpClient(import.meta.url)

type Options = NonNullable<Parameters<typeof request>[1]>

/**
 * Requests through the proxy in the environment. The HTTP client behind it is loaded with the first request, for the
 * sake of daemons that make none.
 */
export class WebClient {
  readonly #agent = new Lazy(async () => {
    const { EnvHttpProxyAgent: Agent } = await undici()
    return new Agent({ allowH2: false })
  })

  /** Like undici's `request`. Redirects are not followed. */
  async request(url: string, options: Options): Promise<Dispatcher.ResponseData<unknown>> {
    const { request: send } = await undici()
    return send(url, { ...options, dispatcher: await this.#agent.get() })
  }

  /** Waits for running requests. */
  async close(): Promise<void> {
    await (await this.#agent.made)?.close()
  }

  /** Aborts running requests. */
  async destroy(): Promise<void> {
    await (await this.#agent.made)?.destroy()
  }
}
