import type { Dispatcher, EnvHttpProxyAgent, request } from 'undici'

type Options = NonNullable<Parameters<typeof request>[1]>

/**
 * Requests through the proxy in the environment. The HTTP client behind it is loaded with the first request, for the
 * sake of daemons that make none.
 */
export class WebClient {
  #agent: Promise<EnvHttpProxyAgent> | undefined

  /** Like undici's `request`. Redirects are not followed. */
  async request(url: string, options: Options): Promise<Dispatcher.ResponseData<unknown>> {
    const { request: send } = await import('undici')
    return send(url, { ...options, dispatcher: await this.#dispatcher() })
  }

  /** Waits for running requests. */
  async close(): Promise<void> {
    await (await this.#agent)?.close()
  }

  /** Aborts running requests. */
  async destroy(): Promise<void> {
    await (await this.#agent)?.destroy()
  }

  #dispatcher(): Promise<EnvHttpProxyAgent> {
    this.#agent ??= import('undici').then(({ EnvHttpProxyAgent: Agent }) => new Agent({ allowH2: false }))
    return this.#agent
  }
}
