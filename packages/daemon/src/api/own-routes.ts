import { EXPOSITION_TYPE } from '@svc/internal-server'
import type { ApiRoute } from './route.ts'

/** The path for `svcd metrics`. Not part of the API: both sides have the same version. */
export const METRICS_PATH = '/svcd/metrics'
export const READY_PATH = '/svcd/ready'

export interface OwnRoutesDeps {
  /** The metrics in Prometheus' text format. */
  readonly figures: () => Promise<string>
  readonly isStopping: () => boolean
  /** Why a responding daemon is not ready; undefined if it is. */
  readonly problem: () => string | undefined
}

/** Routes for probes and operators on the socket, whether or not `[metrics] addr` is set. */
export const ownRoutes = ({ figures, isStopping, problem }: OwnRoutesDeps): ApiRoute[] => [
  textRoute(METRICS_PATH, async () => [200, EXPOSITION_TYPE, await figures()]),
  textRoute(READY_PATH, async () => {
    const type = 'text/plain; charset=utf-8'
    if (isStopping()) return [503, type, 'stopping\n']
    const why = problem()
    return why === undefined ? [200, type, 'ok\n'] : [503, type, `${why}\n`]
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
