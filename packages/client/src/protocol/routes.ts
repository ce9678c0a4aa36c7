import type { TObject, TSchema } from 'typebox'
import * as Type from 'typebox'
import {
  AdoptBodySchema,
  CompanionsBodySchema,
  EnsureBodySchema,
  EvictBodySchema,
  GcBodySchema,
  ImportBtBodySchema,
  ImportCatalogBodySchema,
  ImportHfBodySchema,
  ImportHfPlanBodySchema,
  ImportLocalBodySchema,
  ImportOciBodySchema,
  OutdatedBodySchema,
  PinBodySchema,
  PrivateBodySchema,
  SeedBodySchema,
  SeedLocalBodySchema,
  ShareBodySchema,
  VerifyBodySchema
} from './bodies.ts'
import type { ErrorCode } from './error-codes.ts'
import { RefSchema } from './fields.ts'
import { InventorySchema } from './inventory.ts'
import { JobListSchema, JobSchema } from './job.ts'
import { MAX_ADOPT_BODY_BYTES, type Method, PATHS, type RouteId } from './paths.ts'
import { AdoptPlanSchema, CatalogSearchSchema, ImportPlanSchema } from './plan.ts'
import { PinResultSchema, PrivateResultSchema, RemovedModelSchema } from './removal.ts'
import { OpenResultSchema, ResolveResultSchema } from './resolve.ts'
import { SearchQuerySchema, SearchResultSchema } from './search.ts'
import { SNAPSHOT_ROUTES } from './snapshot.ts'
import { SeedLocalResultSchema, SeedResultSchema, ShareResultSchema, StatusSchema } from './status.ts'
import { RemovedViewSchema, RemoveViewBodySchema, ViewBodySchema, ViewListSchema, ViewSchema } from './view.ts'
import { WhyResultSchema } from './why.ts'

/** The status of each code, or several when it depends on the condition (the catalog's `E_SOURCE_UNAVAILABLE`). */
export type RouteErrors = Readonly<Partial<Record<ErrorCode, number | readonly number[]>>>

/** One route as data: its input, its response, and its error codes. */
export interface Route {
  readonly method: Method
  readonly path: string
  readonly summary: string
  /** Added within version 1, without changing a documented field (spec http.11). */
  readonly additive?: true
  readonly params?: TObject
  readonly query?: TObject
  readonly body?: TObject
  /** Set if it may exceed `MAX_BODY_BYTES`. */
  readonly maxBodyBytes?: number
  /** Status of success. */
  readonly status: number
  /** Absent for raw bytes. */
  readonly response?: TSchema
  /** Codes of responses, without those of every route, such as `E_INTERNAL` and the parser's `E_BAD_REQUEST`. */
  readonly errors: RouteErrors
  /** Codes of jobs that end as failed. */
  readonly jobErrors?: readonly ErrorCode[]
}

const GRAMMAR = { E_BAD_REQUEST: 400, E_PARSE: 400, E_LENGTH: 400 } as const

const RESOLUTION = {
  ...GRAMMAR,
  E_UNKNOWN_REF: 404,
  E_AMBIGUOUS_SELECTOR: 400,
  E_NO_INDEX: 404,
  E_INVALID_INDEX: 500,
  E_NO_MEMBER: 400,
  E_PIN_MISMATCH: 400,
  E_CORRUPTION: 500
} as const satisfies RouteErrors

const HUB = {
  E_BAD_REQUEST: 400,
  E_NO_MEMBER: 400,
  E_UNKNOWN_REF: 502,
  E_SOURCE_FORBIDDEN: 502,
  E_RATE_LIMITED: 502,
  E_SOURCE_UNAVAILABLE: 502
} as const satisfies RouteErrors

const FETCH_JOB = [
  'E_NOT_IMPORTABLE',
  'E_SOURCE_UNAVAILABLE',
  'E_NO_SPACE',
  'E_ABORTED',
  'E_INTERNAL'
] as const satisfies readonly ErrorCode[]

const RefQuery = Type.Object({ ref: RefSchema })
const RemovalQuery = Type.Object({
  tags: Type.Optional(Type.String({ enum: ['all'], description: 'take older snapshots away as well' }))
})
const BlobParams = Type.Object({ digest: Type.String({ description: '`sha256:<hex>`, or the bare hex' }) })

/**
 * Every route of the management API (docs/api.md) as data, used by the HTTP layer, the client and the OpenAPI
 * document.
 */
export const ROUTES = {
  resolve: {
    ...PATHS.resolve,
    summary: 'Resolve a reference to digests, from local state only',
    query: RefQuery,
    status: 200,
    response: ResolveResultSchema,
    errors: RESOLUTION
  },
  open: {
    ...PATHS.open,
    summary: 'Resolve, and list the blobs that are present',
    query: RefQuery,
    status: 200,
    response: OpenResultSchema,
    errors: RESOLUTION
  },
  ensure: {
    ...PATHS.ensure,
    summary: 'Make a model locally complete',
    body: EnsureBodySchema,
    status: 201,
    response: JobSchema,
    errors: { E_BAD_REQUEST: 400 },
    jobErrors: [
      'E_PARSE',
      'E_LENGTH',
      'E_UNKNOWN_REF',
      'E_AMBIGUOUS_SELECTOR',
      'E_NO_INDEX',
      'E_INVALID_INDEX',
      'E_NO_MEMBER',
      'E_PIN_MISMATCH',
      'E_CORRUPTION',
      ...FETCH_JOB
    ]
  },
  job: {
    ...PATHS.job,
    summary: 'One job, a consistent snapshot',
    params: Type.Object({ id: Type.String() }),
    status: 200,
    response: JobSchema,
    errors: { E_NOT_FOUND: 404 }
  },
  cancelJob: {
    ...PATHS.cancelJob,
    summary: 'Cancel a job',
    additive: true,
    params: Type.Object({ id: Type.String() }),
    status: 200,
    response: JobSchema,
    errors: { E_NOT_FOUND: 404 }
  },
  jobs: { ...PATHS.jobs, summary: 'All jobs, newest first', status: 200, response: JobListSchema, errors: {} },
  blob: {
    ...PATHS.blob,
    summary: 'The bytes of a blob, or one range of them',
    params: BlobParams,
    status: 200,
    errors: { E_BAD_REQUEST: 400, E_NOT_FOUND: 404, E_PRECONDITION_FAILED: 412, E_RANGE_INVALID: 416 }
  },
  blobHead: {
    ...PATHS.blobHead,
    summary: 'The headers of the full blob',
    params: BlobParams,
    status: 200,
    errors: { E_BAD_REQUEST: 400, E_NOT_FOUND: 404, E_PRECONDITION_FAILED: 412 }
  },
  importLocal: {
    ...PATHS.importLocal,
    summary: 'Import files and folders of this machine',
    body: ImportLocalBodySchema,
    status: 201,
    response: JobSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_NOT_REGULAR: 400, E_NO_MEMBER: 400 },
    jobErrors: ['E_NOT_IMPORTABLE', 'E_INVALID_INDEX', 'E_SOURCE_NOT_REGULAR', 'E_NO_SPACE', 'E_ABORTED', 'E_INTERNAL']
  },
  importHf: {
    ...PATHS.importHf,
    summary: 'Import a repository of the model hub at one commit',
    body: ImportHfBodySchema,
    status: 201,
    response: JobSchema,
    errors: { ...HUB, E_NOT_IMPORTABLE: 502 },
    jobErrors: ['E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_RATE_LIMITED', 'E_INVALID_INDEX', ...FETCH_JOB]
  },
  importHfPlan: {
    ...PATHS.importHfPlan,
    summary: 'What an import from the hub would fetch, store and skip',
    additive: true,
    body: ImportHfPlanBodySchema,
    status: 200,
    response: ImportPlanSchema,
    errors: { ...HUB, E_NOT_IMPORTABLE: 502 }
  },
  importBt: {
    ...PATHS.importBt,
    summary: 'Import a pinned artifact from a BitTorrent v2 swarm',
    body: ImportBtBodySchema,
    status: 201,
    response: JobSchema,
    errors: { E_BAD_REQUEST: 400, E_NOT_IMPLEMENTED: 501 },
    jobErrors: FETCH_JOB
  },
  importCatalog: {
    ...PATHS.importCatalog,
    summary: 'Anchored pull of a model that the community catalog lists',
    body: ImportCatalogBodySchema,
    status: 201,
    response: JobSchema,
    errors: {
      E_BAD_REQUEST: 400,
      E_UNKNOWN_REF: 400,
      E_NO_MEMBER: 400,
      E_NOT_ANCHORED: 422,
      E_SOURCE_FORBIDDEN: 502,
      E_RATE_LIMITED: 502,
      E_SOURCE_UNAVAILABLE: [502, 503]
    },
    jobErrors: ['E_INVALID_INDEX', ...FETCH_JOB]
  },
  importOci: {
    ...PATHS.importOci,
    summary: 'Imports an OCI artifact, from an image layout on this machine or from a registry',
    additive: true,
    body: ImportOciBodySchema,
    status: 201,
    response: JobSchema,
    errors: { E_BAD_REQUEST: 400, E_RATE_LIMITED: 503 },
    jobErrors: [...FETCH_JOB, 'E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_RATE_LIMITED', 'E_BAD_REQUEST', 'E_NO_MEMBER']
  },
  companions: {
    ...PATHS.companions,
    summary: 'Fetch what lies beside an artifact at the hub, and nothing else',
    additive: true,
    body: CompanionsBodySchema,
    status: 201,
    response: JobSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404, E_SOURCE_UNAVAILABLE: 502 },
    jobErrors: ['E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_RATE_LIMITED', ...FETCH_JOB]
  },
  catalogSearch: {
    ...PATHS.catalogSearch,
    summary: 'Search the community catalog',
    additive: true,
    query: Type.Object({
      q: Type.String({ description: 'search terms' }),
      names: Type.Optional(
        Type.String({
          enum: ['normalized'],
          description: 'quants are read as an import with normalized names reads them'
        })
      )
    }),
    status: 200,
    response: CatalogSearchSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_UNAVAILABLE: 502 }
  },
  search: {
    ...PATHS.search,
    summary: 'Search the model hub, or the community catalog',
    additive: true,
    query: SearchQuerySchema,
    status: 200,
    response: SearchResultSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_FORBIDDEN: 502, E_RATE_LIMITED: 502, E_SOURCE_UNAVAILABLE: 502 }
  },
  verify: {
    ...PATHS.verify,
    summary: 'Re-hash a model, a blob, or the whole store',
    body: VerifyBodySchema,
    status: 201,
    response: JobSchema,
    errors: RESOLUTION,
    jobErrors: ['E_VERIFY_FAILED', 'E_CORRUPTION', 'E_ABORTED', 'E_INTERNAL']
  },
  models: {
    ...PATHS.models,
    summary: 'The local inventory',
    status: 200,
    response: InventorySchema,
    errors: { E_INTERNAL: 500 }
  },
  removeModel: {
    ...PATHS.removeModel,
    summary: 'Take the name of a model away, all its quants',
    additive: true,
    params: Type.Object({ ns: Type.String(), name: Type.String() }),
    query: RemovalQuery,
    status: 200,
    response: RemovedModelSchema,
    errors: { E_BAD_REQUEST: 400, E_UNKNOWN_REF: 404 }
  },
  removeQuant: {
    ...PATHS.removeQuant,
    summary: 'Take one quant of a model away',
    additive: true,
    params: Type.Object({ ns: Type.String(), name: Type.String(), quant: Type.String() }),
    query: RemovalQuery,
    status: 200,
    response: RemovedModelSchema,
    errors: { E_BAD_REQUEST: 400, E_UNKNOWN_REF: 404, E_NO_MEMBER: 404, E_NO_INDEX: 404, E_INVALID_INDEX: 500 }
  },
  unpin: {
    ...PATHS.unpin,
    summary: 'Let go of a pinned import that has no name',
    additive: true,
    params: BlobParams,
    status: 200,
    response: RemovedModelSchema,
    errors: { E_BAD_REQUEST: 400, E_UNKNOWN_REF: 404 }
  },
  gc: {
    ...PATHS.gc,
    summary: 'Remove blobs that nothing needs any more',
    additive: true,
    body: GcBodySchema,
    status: 201,
    response: JobSchema,
    errors: { E_BAD_REQUEST: 400 },
    jobErrors: ['E_NO_INDEX', 'E_INVALID_INDEX', 'E_CORRUPTION', 'E_ABORTED', 'E_INTERNAL']
  },
  evict: {
    ...PATHS.evict,
    summary: 'Free the weights of a model, and keep its name and documents',
    additive: true,
    body: EvictBodySchema,
    status: 201,
    response: JobSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404 },
    jobErrors: ['E_KEPT', 'E_NO_INDEX', 'E_INVALID_INDEX', 'E_CORRUPTION', 'E_ABORTED', 'E_INTERNAL']
  },
  outdated: {
    ...PATHS.outdated,
    summary: 'Ask the hub whether the revisions that models follow have newer commits',
    additive: true,
    body: OutdatedBodySchema,
    status: 201,
    response: JobSchema,
    errors: RESOLUTION,
    jobErrors: ['E_SOURCE_UNAVAILABLE', 'E_RATE_LIMITED', 'E_SOURCE_FORBIDDEN', 'E_ABORTED', 'E_INTERNAL']
  },
  ...SNAPSHOT_ROUTES,
  setPrivate: {
    ...PATHS.setPrivate,
    summary: 'Keep an artifact from everybody, or give it to others again',
    additive: true,
    body: PrivateBodySchema,
    status: 200,
    response: PrivateResultSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404 }
  },
  setPinned: {
    ...PATHS.setPinned,
    summary: 'Keep the bytes of an artifact here whatever the quota, or let it take them again',
    additive: true,
    body: PinBodySchema,
    status: 200,
    response: PinResultSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404 }
  },
  seed: {
    ...PATHS.seed,
    summary: 'Share what is here with others, or share nothing; takes effect at once',
    additive: true,
    body: SeedBodySchema,
    status: 200,
    response: SeedResultSchema,
    errors: { E_BAD_REQUEST: 400 }
  },
  seedLocal: {
    ...PATHS.seedLocal,
    summary: 'Decide, once and for all, whether own models are given to others',
    additive: true,
    body: SeedLocalBodySchema,
    status: 200,
    response: SeedLocalResultSchema,
    errors: { E_BAD_REQUEST: 400 }
  },
  status: {
    ...PATHS.status,
    summary: 'The daemon, its store and its swarm client',
    additive: true,
    status: 200,
    response: StatusSchema,
    errors: {}
  },
  share: {
    ...PATHS.share,
    summary: 'All that another node needs to import this artifact over the swarm',
    additive: true,
    query: RefQuery,
    status: 200,
    response: ShareResultSchema,
    errors: { ...RESOLUTION, E_NOT_IMPLEMENTED: 501, E_NOT_FOUND: 404 }
  },
  why: {
    ...PATHS.why,
    summary: 'To whom an artifact is given, by which door, and from which facts that follows',
    additive: true,
    query: RefQuery,
    status: 200,
    response: WhyResultSchema,
    errors: RESOLUTION
  },
  joinShare: {
    ...PATHS.joinShare,
    summary: 'The same, and announce the artifact now where nothing stands in the way',
    additive: true,
    body: ShareBodySchema,
    status: 200,
    response: ShareResultSchema,
    errors: { ...RESOLUTION, E_NOT_IMPLEMENTED: 501, E_NOT_FOUND: 404 }
  },
  adopt: {
    ...PATHS.adopt,
    summary: 'Import files that lie under other names',
    additive: true,
    body: AdoptBodySchema,
    maxBodyBytes: MAX_ADOPT_BODY_BYTES,
    status: 201,
    response: JobSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_NOT_REGULAR: 400 },
    jobErrors: ['E_NOT_IMPORTABLE', 'E_INVALID_INDEX', 'E_SOURCE_NOT_REGULAR', 'E_NO_SPACE', 'E_ABORTED', 'E_INTERNAL']
  },
  adoptPlan: {
    ...PATHS.adoptPlan,
    summary: 'The quants that such an import would make',
    additive: true,
    body: AdoptBodySchema,
    maxBodyBytes: MAX_ADOPT_BODY_BYTES,
    status: 200,
    response: AdoptPlanSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_NOT_REGULAR: 400, E_NOT_IMPORTABLE: 502 }
  },
  makeView: {
    ...PATHS.makeView,
    summary: 'Lay an artifact out in a folder that runtimes load',
    additive: true,
    body: ViewBodySchema,
    status: 200,
    response: ViewSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404, E_ABORTED: 409, E_NO_SPACE: 507 }
  },
  views: {
    ...PATHS.views,
    summary: 'The views of this store',
    additive: true,
    status: 200,
    response: ViewListSchema,
    errors: {}
  },
  removeView: {
    ...PATHS.removeView,
    summary: 'Remove a view',
    additive: true,
    body: RemoveViewBodySchema,
    status: 200,
    response: RemovedViewSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404 }
  }
} as const satisfies Readonly<Record<RouteId, Route>>
