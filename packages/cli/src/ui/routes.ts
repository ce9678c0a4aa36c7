import type {
  Client,
  GcBody,
  ImportBtBody,
  ImportCatalogBody,
  ImportHfBody,
  ImportLocalBody,
  ImportOciBody,
  OutdatedBody,
  PrivateBody,
  SearchQuery,
  SeedBody,
  SeedLocalBody,
  UploadLimitBody
} from '@svc/client'
import {
  type EvictBody,
  type ImportHfPlanBody,
  type Method,
  PATHS,
  type PinBody,
  type RouteId
} from '@svc/client/protocol'
import { removeOne } from '../commands/remove.ts'
import { canonicalRef } from '../reference.ts'
import { BridgeRefusal, textOf } from './answer.ts'
import { OWN_ROUTES } from './own-routes.ts'
import type { PageRequest, PageRoute } from './page-request.ts'

const reading =
  (read: (client: Client, ref: string, call: Pick<PageRequest, 'signal'>) => Promise<unknown>): PageRoute =>
  async ({ session, query, signal }) =>
    read(session.client, await canonicalRef(session, textOf(query.get('ref'))), { ...(signal && { signal }) })

/** The daemon checks the fields. */
const posting =
  <Body>(post: (client: Client, body: Body) => Promise<unknown>): PageRoute =>
  ({ session, body }) =>
    post(session.client, body as Body)

/** The same, of one model. */
const postingOf =
  <Body extends { readonly ref: string }>(post: (client: Client, body: Body) => Promise<unknown>): PageRoute =>
  async ({ session, body }) =>
    post(session.client, { ...(body as Body), ref: await canonicalRef(session, textOf(body.ref)) })

const removal: PageRoute = ({ session, params: { ns, name, quant }, query }) =>
  removeOne(session, `${ns}/${name}${quant === undefined ? '' : `:${quant}`}`, query.get('tags') === 'all')

/** The routes of the daemon that a page may use: none that reads bytes, or that names files of other tools. */
const PASSED: Readonly<Partial<Record<RouteId, PageRoute>>> = {
  models: ({ session, signal }) => session.client.models({ signal }),
  status: ({ session, signal }) => session.client.status({ signal }),
  views: async ({ session, signal }) => ({ views: await session.client.views({ signal }) }),
  jobs: async ({ session, signal }) => ({ jobs: await session.client.jobs({ signal }) }),
  job: ({ session, params, signal }) => session.client.job(params.id!, { signal }),
  cancelJob: ({ session, params }) => session.client.cancelJob(params.id!),
  resolve: reading((client, ref, call) => client.resolve(ref, call)),
  open: reading((client, ref, call) => client.open(ref, call)),
  why: reading((client, ref, call) => client.why(ref, call)),
  share: reading((client, ref, call) => client.share(ref, call)),
  joinShare: postingOf((client, { ref }) => client.joinShare(ref)),
  ensure: postingOf((client, body) => client.ensure(body)),
  companions: postingOf((client, body) => client.companions(body)),
  verify: async ({ session, body }) => {
    const target = textOf(body.target)
    return session.client.verify({ target: target === 'all' ? target : await canonicalRef(session, target) })
  },
  setPrivate: postingOf((client, body: PrivateBody) => client.setPrivate(body)),
  setPinned: postingOf((client, body: PinBody) => client.setPinned(body)),
  evict: postingOf((client, body: EvictBody) => client.evict(body)),
  gc: posting((client, body: GcBody) => client.gc(body)),
  outdated: posting((client, body: OutdatedBody) => client.outdated(body)),
  seed: posting((client, body: SeedBody) => client.decideSeed(body)),
  seedLocal: posting((client, body: SeedLocalBody) => client.decideSeedLocal(body)),
  uploadLimit: posting((client, body: UploadLimitBody) => client.limitUpload(body)),
  importLocal: posting((client, body: ImportLocalBody) => client.importLocal(body)),
  importHf: posting((client, body: ImportHfBody) => client.importHf(body)),
  importHfPlan: posting((client, body: ImportHfPlanBody) => client.planHf(body)),
  importBt: posting((client, body: ImportBtBody) => client.importBt(body)),
  importCatalog: posting((client, body: ImportCatalogBody) => client.importCatalog(body)),
  importOci: posting((client, body: ImportOciBody) => client.importOci(body)),
  search: ({ session, query, signal }) =>
    session.client.search(Object.fromEntries(query) as unknown as SearchQuery, { signal }),
  catalogSearch: ({ session, query, signal }) => session.client.searchCatalog(query.get('q') ?? '', { signal }),
  removeModel: removal,
  removeQuant: removal,
  unpin: ({ session, params }) => session.client.unpin(params.digest!)
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

/** The route for a path below the page's own. @throws Refusal */
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
  if (found === undefined) throw new BridgeRefusal(404, 'E_NOT_FOUND', 'there is nothing of that name')
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
