import { type Method, PATHS, type RouteId } from '@svc/client/protocol'
import { BridgeRefusal, textOf } from '@svc/internal-bridge'
import { removeOne } from '../commands/remove.ts'
import { canonicalRef } from '../models/reference.ts'
import { OWN_ROUTES } from './own-routes.ts'
import type { PageRoute } from './page-route.ts'

type ImportMethod = 'importLocal' | 'importHf' | 'importBt' | 'importOci'

/** The daemon checks the fields. */
const posting =
  (method: ImportMethod | 'gc' | 'decideSeed' | 'decideSeedLocal' | 'limitUpload' | 'limitDownload'): PageRoute =>
  ({ session, body }) =>
    session.client[method](body as never)

/** The same for one model. */
const postingOf =
  (method: 'ensure' | 'evict' | 'setPrivate' | 'setPinned'): PageRoute =>
  async ({ session, body }) =>
    session.client[method]({ ...body, ref: await canonicalRef(session, textOf(body.ref)) } as never)

const removal: PageRoute = ({ session, params: { ns, name, quant }, query }) =>
  removeOne(session, `${ns}/${name}${quant === undefined ? '' : `:${quant}`}`, query.get('tags') === 'all')

/** The routes of the daemon that the page uses: none that reads bytes, or that names files of other tools. */
const PASSED: Readonly<Partial<Record<RouteId, PageRoute>>> = {
  models: ({ session, signal }) => session.client.models({ signal }),
  job: ({ session, params, signal }) => session.client.job(params.id!, { signal }),
  resumeJob: ({ session, params }) => session.client.resumeJob(params.id!),
  cancelJob: ({ session, params }) => session.client.cancelJob(params.id!),
  why: async ({ session, query, signal }) =>
    session.client.why(await canonicalRef(session, textOf(query.get('ref'))), { signal }),
  joinShare: async ({ session, body }) => session.client.joinShare(await canonicalRef(session, textOf(body.ref))),
  ensure: postingOf('ensure'),
  verify: async ({ session, body }) => {
    const target = textOf(body.target)
    return session.client.verify({ target: target === 'all' ? target : await canonicalRef(session, target) })
  },
  setPrivate: postingOf('setPrivate'),
  setPinned: postingOf('setPinned'),
  evict: postingOf('evict'),
  gc: posting('gc'),
  seed: posting('decideSeed'),
  seedLocal: posting('decideSeedLocal'),
  peers: ({ session, signal }) => session.client.peers({ signal }),
  uploadLimit: posting('limitUpload'),
  downloadLimit: posting('limitDownload'),
  importLocal: posting('importLocal'),
  importHf: posting('importHf'),
  importBt: posting('importBt'),
  importOci: posting('importOci'),
  search: ({ session, query, signal }) =>
    session.client.search({ ...Object.fromEntries(query), q: query.get('q') ?? '' }, { signal }),
  removeModel: removal,
  removeQuant: removal
}

interface KnownRoute {
  readonly method: Method
  readonly segments: readonly string[]
  readonly route: PageRoute
}

const known = (method: Method, path: string, route: PageRoute): KnownRoute => ({
  method,
  segments: path.replace(/^\//, '').split('/'),
  route
})

const KNOWN: readonly KnownRoute[] = [
  ...Object.entries(PASSED).map(([id, route]) => known(PATHS[id as RouteId].method, PATHS[id as RouteId].path, route)),
  ...Object.entries(OWN_ROUTES).map(([line, route]) => {
    const [method, path] = line.split(' ') as [Method, string]
    return known(method, path, route)
  })
]

/** The route for a path below the page's own. @throws BridgeRefusal */
export function findRoute(
  method: string,
  path: string
): { readonly route: PageRoute; readonly params: Readonly<Record<string, string>> } {
  const given = path.split('/')
  const fitting = KNOWN.filter(
    ({ segments }) =>
      segments.length === given.length &&
      segments.every((segment, i) => segment === given[i] || (segment.startsWith('{') && given[i] !== ''))
  )
  const found = fitting.find((each) => each.method === method)
  if (found === undefined && fitting.length > 0)
    throw new BridgeRefusal(
      405,
      'E_METHOD_NOT_ALLOWED',
      `this path takes ${fitting.map((each) => each.method).join(', ')}`
    )
  if (found === undefined) throw new BridgeRefusal(404, 'E_NOT_FOUND', 'nothing has that name')
  return { route: found.route, params: paramsOf(found.segments, given) }
}

function paramsOf(segments: readonly string[], given: readonly string[]): Record<string, string> {
  try {
    return Object.fromEntries(
      segments.flatMap((segment, i) =>
        segment.startsWith('{') ? [[segment.slice(1, -1), decodeURIComponent(given[i]!)]] : []
      )
    )
  } catch {
    throw new BridgeRefusal(400, 'E_BAD_REQUEST', 'the path is not percent-encoded UTF-8')
  }
}
