import { EXPOSITION_TYPE } from '../http/exposition-type.ts'
import type { ApiRoute } from './route.ts'

/** How `svcd metrics` reaches the daemon. Not part of the API: both sides have the same version. */
export const METRICS_PATH = '/svcd/metrics'
/** How `svcd ready` does. */
export const READY_PATH = '/svcd/ready'

/** Where the answers come from. */
export interface OwnRoutesDeps {
  /** The figures in Prometheus' text format. */
  readonly figures: () => Promise<string>
  readonly isStopping: () => boolean
}

/** What probes and operators ask at the socket, whether or not `[metrics] addr` is set. */
export const ownRoutes = ({ figures, isStopping }: OwnRoutesDeps): ApiRoute[] => [
  textRoute(METRICS_PATH, async () => [200, EXPOSITION_TYPE, await figures()]),
  textRoute(READY_PATH, async () => {
    const type = 'text/plain; charset=utf-8'
    return isStopping() ? [503, type, 'stopping\n'] : [200, type, 'ok\n']
  })
]

function textRoute(path: string, text: () => Promise<readonly [status: number, type: string, text: string]>): ApiRoute {
  return {
    route: { method: 'GET', path },
    async answer(_request, response) {
      const [status, type, body] = await text()
      response.writeHead(status, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) })
      response.end(body)
    }
  }
}
