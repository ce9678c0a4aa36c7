import type { Clock } from '@svc/internal-clock'
import { EXPOSITION_TYPE, GuardedListener, type ListenerOptions, refuse, sendBytes } from '@svc/internal-server'
import type { KeptPorts } from '@svc/library/parts'
import { listenAt } from '../config/address.ts'
import { recently } from '../recently.ts'

/** Requests within this time share one response: collecting takes time proportional to the store, and anyone may ask. */
const FRESH_MS = 1_000

export interface MetricsListenerOptions extends Pick<ListenerOptions, 'log' | 'traffic'> {
  readonly text: () => Promise<string>
  /** Why a running daemon cannot work; undefined if it can. */
  readonly problem: () => string | undefined
  /** Whether the API responds. */
  readonly isReady: () => boolean
  readonly clock: Clock
  readonly ports: KeptPorts
}

/** `GET /metrics`, `/healthz` and `/readyz` on a separate port (spec add.26). @throws ConfigError, StartError naming the key */
export function listenForMetrics(
  addr: string,
  { text, problem, isReady, clock, ports, ...options }: MetricsListenerOptions
): Promise<GuardedListener> {
  const fresh = recently(clock, FRESH_MS, async () => Buffer.from(await text()))
  const plain = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' }
  const answer: ListenerOptions['answer'] = async (request, response, url) => {
    const path = url.split('?', 1)[0]
    if (path === '/metrics')
      return sendBytes(request, response, await fresh(), { ...plain, 'Content-Type': EXPOSITION_TYPE })
    if (path !== '/healthz' && path !== '/readyz')
      return refuse(response, 404, 'E_NOT_FOUND', 'this port serves only /metrics, /healthz and /readyz')
    // the log says what is there instead
    if (problem() !== undefined) return refuse(response, 503, 'E_INTERNAL', 'the store is gone')
    if (path === '/readyz' && !isReady())
      return refuse(response, 503, 'E_SHUTTING_DOWN', 'the API is not ready: the daemon is starting or stopping')
    sendBytes(request, response, Buffer.from('ok\n'), plain)
  }
  const listen = (address: ListenerOptions['address']) =>
    GuardedListener.listen({ name: 'metrics', address, answer, ...options })
  return listenAt(addr, '[metrics] addr', (address) =>
    ports.listen('metrics', address, listen, (listener) => listener.address.port)
  )
}
