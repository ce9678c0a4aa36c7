import { type Clock, systemClock } from '@svc/internal-clock'
import { formatAddress } from '@svc/internal-net'
import { configuredAddress } from '../config/address.ts'
import { StartError } from '../errors.ts'
import { EXPOSITION_TYPE } from '../http/envelope.ts'
import { GuardedListener, refuse, sendBytes } from '../http/guarded-listener.ts'
import type { Traffic } from '../http/traffic.ts'
import type { Log } from '../log.ts'
import { recently } from '../recently.ts'

/** Requests within this time share one response: collecting takes time proportional to the store, and anyone may ask. */
const FRESH_MS = 1_000

/** `GET /metrics`, `/healthz` and `/readyz` on a separate port (spec add.26). */
export class MetricsListener {
  #listener!: GuardedListener
  #isReady = false

  /** `problem` says why a running daemon cannot work. @throws ConfigError, StartError naming the key */
  static async listen(
    {
      text,
      problem,
      clock = systemClock
    }: {
      readonly text: () => Promise<string>
      readonly problem: () => string | undefined
      readonly clock?: Clock
    },
    addr: string,
    log: Log,
    traffic: Traffic
  ): Promise<MetricsListener> {
    const metrics = new MetricsListener()
    const fresh = recently(clock, FRESH_MS, async () => Buffer.from(await text()))
    const key = '[metrics] addr'
    const address = configuredAddress(addr, key)
    try {
      metrics.#listener = await GuardedListener.listen({
        name: 'metrics',
        address,
        log,
        traffic,
        answer: async (request, response, url) => {
          const path = url.split('?', 1)[0]
          const plain = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }
          if (path === '/metrics')
            return sendBytes(request, response, await fresh(), {
              ...plain,
              'Content-Type': EXPOSITION_TYPE
            })
          const why = path === '/healthz' || path === '/readyz' ? problem() : undefined
          if (why !== undefined) return refuse(response, 503, 'E_INTERNAL', why)
          if (path === '/healthz' || (path === '/readyz' && metrics.#isReady))
            return sendBytes(request, response, Buffer.from('ok\n'), plain)
          if (path === '/readyz')
            return refuse(response, 503, 'E_SHUTTING_DOWN', 'the API is not ready: the daemon is starting or stopping')
          refuse(response, 404, 'E_NOT_FOUND', 'this port serves only /metrics, /healthz and /readyz')
        }
      })
    } catch (cause) {
      throw new StartError(`${key} = "${addr}" cannot be listened on: ${(cause as Error).message}`, { cause })
    }
    return metrics
  }

  get address(): string {
    return formatAddress(this.#listener.address)
  }

  /** Sets whether the API responds. */
  setReady(isReady: boolean): void {
    this.#isReady = isReady
  }

  close(): Promise<void> {
    return this.#listener.close()
  }
}
