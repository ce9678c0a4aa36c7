/** The HTTP methods in use. */
export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'

/** Method and path of every route, apart from the schemas, which the client need not load. `{x}` is one segment. */
export const PATHS = {
  resolve: { method: 'GET', path: '/v1/resolve' },
  open: { method: 'GET', path: '/v1/open' },
  ensure: { method: 'POST', path: '/v1/ensure' },
  job: { method: 'GET', path: '/v1/jobs/{id}' },
  jobs: { method: 'GET', path: '/v1/jobs' },
  resumeJob: { method: 'PUT', path: '/v1/jobs/{id}' },
  cancelJob: { method: 'DELETE', path: '/v1/jobs/{id}' },
  blob: { method: 'GET', path: '/v1/blob/{digest}' },
  blobHead: { method: 'HEAD', path: '/v1/blob/{digest}' },
  importLocal: { method: 'POST', path: '/v1/import/local' },
  importHf: { method: 'POST', path: '/v1/import/hf' },
  inspectHf: { method: 'POST', path: '/v1/inspect/hf' },
  importHfPlan: { method: 'POST', path: '/v1/import/hf/plan' },
  importBt: { method: 'POST', path: '/v1/import/bt' },
  importCatalog: { method: 'POST', path: '/v1/import/catalog' },
  importOci: { method: 'POST', path: '/v1/import/oci' },
  companions: { method: 'POST', path: '/v1/companions' },
  catalogSearch: { method: 'GET', path: '/v1/catalog/search' },
  hubAccount: { method: 'POST', path: '/v1/hub/account' },
  search: { method: 'GET', path: '/v1/search' },
  verify: { method: 'POST', path: '/v1/verify' },
  models: { method: 'GET', path: '/v1/models' },
  removeModel: { method: 'DELETE', path: '/v1/models/{ns}/{name}' },
  removeQuant: { method: 'DELETE', path: '/v1/models/{ns}/{name}/{quant}' },
  giveName: { method: 'POST', path: '/v1/names' },
  unpin: { method: 'DELETE', path: '/v1/pins/{digest}' },
  tags: { method: 'GET', path: '/v1/tags' },
  tag: { method: 'GET', path: '/v1/tags/{ns}/{name}/{tag}' },
  setTag: { method: 'PUT', path: '/v1/tags/{ns}/{name}/{tag}' },
  removeTag: { method: 'DELETE', path: '/v1/tags/{ns}/{name}/{tag}' },
  gc: { method: 'POST', path: '/v1/gc' },
  evict: { method: 'POST', path: '/v1/evict' },
  outdated: { method: 'POST', path: '/v1/outdated' },
  makeSnapshot: { method: 'POST', path: '/v1/snapshots' },
  holdSnapshot: { method: 'PUT', path: '/v1/snapshots/{id}' },
  releaseSnapshot: { method: 'DELETE', path: '/v1/snapshots/{id}' },
  setPrivate: { method: 'PUT', path: '/v1/private' },
  setPinned: { method: 'PUT', path: '/v1/pin' },
  seed: { method: 'PUT', path: '/v1/seed' },
  seedLocal: { method: 'PUT', path: '/v1/seed-local' },
  peers: { method: 'GET', path: '/v1/peers' },
  uploadLimit: { method: 'PUT', path: '/v1/upload-limit' },
  downloadLimit: { method: 'PUT', path: '/v1/download-limit' },
  status: { method: 'GET', path: '/v1/status' },
  share: { method: 'GET', path: '/v1/share' },
  why: { method: 'GET', path: '/v1/why' },
  joinShare: { method: 'POST', path: '/v1/share' },
  adopt: { method: 'POST', path: '/v1/adopt' },
  adoptPlan: { method: 'POST', path: '/v1/adopt/plan' },
  makeView: { method: 'POST', path: '/v1/views' },
  views: { method: 'GET', path: '/v1/views' },
  removeView: { method: 'DELETE', path: '/v1/views' },
  standingViews: { method: 'GET', path: '/v1/views/standing' },
  addStandingView: { method: 'PUT', path: '/v1/views/standing' },
  removeStandingView: { method: 'DELETE', path: '/v1/views/standing' }
} as const satisfies Readonly<Record<string, { method: Method; path: `/v1/${string}` }>>

/** The name of a route in {@link PATHS} and `ROUTES`. */
export type RouteId = keyof typeof PATHS

/** The only major version (spec http.4). */
export const API_VERSIONS = ['v1'] as const

/** Limit of a request body; larger ones get `E_TOO_LARGE` (spec http.6). */
export const MAX_BODY_BYTES = 1024 * 1024
/** The limit for `POST /v1/adopt`, whose body lists files: some 100,000 of them (spec add.27). */
export const MAX_ADOPT_BODY_BYTES = 32 * 1024 * 1024
