import type { Dispatcher, EnvHttpProxyAgent, request } from 'undici'

type Options = NonNullable<Parameters<typeof request>[1]>

/**
 * Requests through the proxy that the environment names. The HTTP client behind it is loaded with the first one: a daemon that asks nobody
 * starts without it.
 */
export class WebClient {
  #agent: Promise<EnvHttpProxyAgent> | undefined

  /** As undici's `request`. Redirects are not followed. */
  async request(url: string, options: Options): Promise<Dispatcher.ResponseData<unknown>> {
    const { request: send } = await import('undici')
    return send(url, { ...options, dispatcher: await this.#dispatcher() })
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    await (await this.#agent)?.close()
  }

  /** Cuts what is under way. */
  async destroy(): Promise<void> {
    await (await this.#agent)?.destroy()
  }

  #dispatcher(): Promise<EnvHttpProxyAgent> {
    this.#agent ??= import('undici').then(({ EnvHttpProxyAgent: Agent }) => new Agent({ allowH2: false }))
    return this.#agent
  }
}
