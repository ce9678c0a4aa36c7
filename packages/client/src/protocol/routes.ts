import type { TObject, TSchema } from 'typebox'
import * as Type from 'typebox'
import {
  AdoptBodySchema,
  CompanionsBodySchema,
  DownloadLimitBodySchema,
  EnsureBodySchema,
  EvictBodySchema,
  GcBodySchema,
  HubAccountBodySchema,
  ImportBtBodySchema,
  ImportCatalogBodySchema,
  ImportHfBodySchema,
  ImportHfPlanBodySchema,
  ImportLocalBodySchema,
  ImportOciBodySchema,
  InspectHfBodySchema,
  OutdatedBodySchema,
  PinBodySchema,
  PrivateBodySchema,
  SeedBodySchema,
  SeedLocalBodySchema,
  ShareBodySchema,
  UploadLimitBodySchema,
  VerifyBodySchema
} from './bodies.ts'
import type { ErrorCode } from './error-codes.ts'
import { RefSchema } from './fields.ts'
import { InventorySchema, TagEntrySchema } from './inventory.ts'
import { JobListSchema, JobSchema } from './job.ts'
import { NameBodySchema, NamedModelSchema } from './naming.ts'
import { MAX_ADOPT_BODY_BYTES, type Method, PATHS, type RouteId } from './paths.ts'
import { AdoptPlanSchema, CatalogSearchSchema, ImportPlanSchema, InspectionSchema } from './plan.ts'
import { PinResultSchema, PrivateResultSchema, RemovedModelSchema } from './removal.ts'
import { OpenResultSchema, ResolveResultSchema } from './resolve.ts'
import { text } from './schema.ts'
import { HubAccountResultSchema, SearchQuerySchema, SearchResultSchema } from './search.ts'
import { SnapshotSchema } from './snapshot.ts'
import {
  DownloadLimitResultSchema,
  PeerListSchema,
  SeedLocalResultSchema,
  SeedResultSchema,
  ShareResultSchema,
  StatusSchema,
  UploadLimitResultSchema
} from './status.ts'
import { TagBodySchema, TagListSchema } from './tag.ts'
import {
  RemovedViewSchema,
  RemoveStandingViewBodySchema,
  RemoveViewBodySchema,
  StandingViewBodySchema,
  StandingViewListSchema,
  StandingViewSchema,
  ViewBodySchema,
  ViewListSchema,
  ViewSchema
} from './view.ts'
import { WhyResultSchema } from './why.ts'

/** The status of each code, or several when it depends on the condition (the catalog's `E_SOURCE_UNAVAILABLE`). */
export type RouteErrors = Readonly<Partial<Record<ErrorCode, number | readonly number[]>>>

/** One route as data: its input, its response, and its error codes. */
export interface Route {
  readonly method: Method
  readonly path: string
  readonly summary: string
  /** True for one that was added within version 1, without changing a documented field (spec http.11). */
  readonly additive: boolean
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

const FETCH_JOB: readonly ErrorCode[] = [
  'E_NOT_IMPORTABLE',
  'E_SOURCE_UNAVAILABLE',
  'E_NO_SPACE',
  'E_ABORTED',
  'E_INTERNAL'
]

const RefQuery = Type.Object({ ref: RefSchema })
const RemovalQuery = Type.Object({
  tags: Type.Optional(Type.String({ enum: ['all'], description: 'take older snapshots away as well' }))
})
const BlobParams = Type.Object({ digest: text('`sha256:<hex>`, or the bare hex') })
const IdParams = Type.Object({ id: Type.String() })
const TagParams = Type.Object({ ns: Type.String(), name: Type.String(), tag: Type.String() })
const TAG = { params: TagParams, response: TagEntrySchema } as const
const TAG_ERRORS = { E_BAD_REQUEST: 400, E_PARSE: 400, E_UNKNOWN_REF: 404 } as const satisfies RouteErrors

/** What a route that starts a job answers. */
const JOB = { status: 201, response: JobSchema } as const

/** A route without what {@link PATHS} says of it; the status of success is 200 unless it names another one. */
type Contract = Omit<Route, 'method' | 'path' | 'additive' | 'status'> & { readonly status?: number }

const CONTRACTS = {
  resolve: {
    summary: 'Resolve a reference to digests, from local state only',
    query: RefQuery,
    response: ResolveResultSchema,
    errors: RESOLUTION
  },
  open: {
    summary: 'Resolve, and list the blobs that are present',
    query: RefQuery,
    response: OpenResultSchema,
    errors: RESOLUTION
  },
  ensure: {
    summary: 'Make a model locally complete',
    body: EnsureBodySchema,
    ...JOB,
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
    summary: 'One job, a consistent snapshot',
    params: IdParams,
    response: JobSchema,
    errors: { E_NOT_FOUND: 404 }
  },
  resumeJob: {
    summary: 'Go on with an import that was interrupted or has failed',
    params: IdParams,
    ...JOB,
    errors: {
      ...HUB,
      E_NOT_FOUND: 404,
      E_SOURCE_NOT_REGULAR: 400,
      E_NOT_IMPORTABLE: 502,
      E_NOT_IMPLEMENTED: 501,
      E_NOT_ANCHORED: 422
    }
  },
  cancelJob: {
    summary: 'Cancel a job',
    params: IdParams,
    response: JobSchema,
    errors: { E_NOT_FOUND: 404 }
  },
  jobs: { summary: 'All jobs, newest first', response: JobListSchema, errors: {} },
  blob: {
    summary: 'The bytes of a blob, or one range of them',
    params: BlobParams,
    errors: { E_BAD_REQUEST: 400, E_NOT_FOUND: 404, E_PRECONDITION_FAILED: 412, E_RANGE_INVALID: 416 }
  },
  blobHead: {
    summary: 'The headers of the full blob',
    params: BlobParams,
    errors: { E_BAD_REQUEST: 400, E_NOT_FOUND: 404, E_PRECONDITION_FAILED: 412 }
  },
  importLocal: {
    summary: 'Import files and folders of this machine',
    body: ImportLocalBodySchema,
    ...JOB,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_NOT_REGULAR: 400, E_NO_MEMBER: 400 },
    jobErrors: ['E_NOT_IMPORTABLE', 'E_INVALID_INDEX', 'E_SOURCE_NOT_REGULAR', 'E_NO_SPACE', 'E_ABORTED', 'E_INTERNAL']
  },
  importHf: {
    summary: 'Import a repository of the model hub at one commit',
    body: ImportHfBodySchema,
    ...JOB,
    errors: { ...HUB, E_NOT_IMPORTABLE: 502 },
    jobErrors: ['E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_RATE_LIMITED', 'E_INVALID_INDEX', ...FETCH_JOB]
  },
  importHfPlan: {
    summary: 'What an import from the hub would fetch, store and skip',
    body: ImportHfPlanBodySchema,
    response: ImportPlanSchema,
    errors: { ...HUB, E_NOT_IMPORTABLE: 502 }
  },
  inspectHf: {
    summary: 'What would run code in a repository of the hub, and what is malformed',
    body: InspectHfBodySchema,
    response: InspectionSchema,
    errors: HUB
  },
  importBt: {
    summary: 'Import a pinned artifact from a BitTorrent v2 swarm',
    body: ImportBtBodySchema,
    ...JOB,
    errors: { E_BAD_REQUEST: 400, E_NOT_IMPLEMENTED: 501 },
    jobErrors: FETCH_JOB
  },
  importCatalog: {
    summary: 'Anchored pull of a model that the community catalog lists',
    body: ImportCatalogBodySchema,
    ...JOB,
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
    summary: 'Import an OCI artifact, from an image layout on this machine or from a registry',
    body: ImportOciBodySchema,
    ...JOB,
    errors: { E_BAD_REQUEST: 400, E_RATE_LIMITED: 503 },
    jobErrors: [...FETCH_JOB, 'E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_RATE_LIMITED', 'E_BAD_REQUEST', 'E_NO_MEMBER']
  },
  companions: {
    summary: 'Fetch the companions of an artifact from the hub, and nothing else',
    body: CompanionsBodySchema,
    ...JOB,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404, E_SOURCE_UNAVAILABLE: 502 },
    jobErrors: ['E_UNKNOWN_REF', 'E_SOURCE_FORBIDDEN', 'E_RATE_LIMITED', ...FETCH_JOB]
  },
  catalogSearch: {
    summary: 'Search the community catalog',
    query: Type.Object({
      q: text('search terms'),
      names: Type.Optional(
        Type.String({
          enum: ['normalized'],
          description: 'quants are read as an import with normalized names reads them'
        })
      )
    }),
    response: CatalogSearchSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_UNAVAILABLE: 502 }
  },
  search: {
    summary: 'Search the model hub, or the community catalog',
    query: SearchQuerySchema,
    response: SearchResultSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_FORBIDDEN: 502, E_RATE_LIMITED: 502, E_SOURCE_UNAVAILABLE: 502 }
  },
  hubAccount: {
    summary: 'Ask the hub whose token it is; nothing is stored',
    body: HubAccountBodySchema,
    response: HubAccountResultSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_FORBIDDEN: 502, E_RATE_LIMITED: 502, E_SOURCE_UNAVAILABLE: 502 }
  },
  verify: {
    summary: 'Re-hash a model, a blob, or the whole store',
    body: VerifyBodySchema,
    ...JOB,
    errors: RESOLUTION,
    jobErrors: ['E_VERIFY_FAILED', 'E_CORRUPTION', 'E_ABORTED', 'E_INTERNAL']
  },
  models: {
    summary: 'The local inventory',
    query: Type.Object({
      limit: Type.Optional(text('at most this many names, 1 to 10,000 (additive)')),
      after: Type.Optional(text('`ns/name`: those that come after it, such as the `next` of a page (additive)'))
    }),
    response: InventorySchema,
    errors: { E_BAD_REQUEST: 400, E_INTERNAL: 500 }
  },
  removeModel: {
    summary: 'Remove the name of a model, with all its quants',
    params: Type.Object({ ns: Type.String(), name: Type.String() }),
    query: RemovalQuery,
    response: RemovedModelSchema,
    errors: { E_BAD_REQUEST: 400, E_UNKNOWN_REF: 404 }
  },
  removeQuant: {
    summary: 'Remove one quant of a model',
    params: Type.Object({ ns: Type.String(), name: Type.String(), quant: Type.String() }),
    query: RemovalQuery,
    response: RemovedModelSchema,
    errors: { E_BAD_REQUEST: 400, E_UNKNOWN_REF: 404, E_NO_MEMBER: 404, E_NO_INDEX: 404, E_INVALID_INDEX: 500 }
  },
  giveName: {
    summary: 'Give a model, or one quant of it, another name, or rename it',
    body: NameBodySchema,
    response: NamedModelSchema,
    errors: {
      E_BAD_REQUEST: 400,
      E_UNKNOWN_REF: 404,
      E_NO_MEMBER: 404,
      E_NO_INDEX: 404,
      E_INVALID_INDEX: 500,
      E_NOT_IMPORTABLE: 502
    }
  },
  unpin: {
    summary: 'Forget a pinned import that has no name',
    params: BlobParams,
    response: RemovedModelSchema,
    errors: { E_BAD_REQUEST: 400, E_UNKNOWN_REF: 404 }
  },
  tags: {
    summary: 'The tags of the store, or of one repository',
    query: Type.Object({ repo: Type.Optional(text('`ns/name`')) }),
    response: TagListSchema,
    errors: { E_BAD_REQUEST: 400 }
  },
  tag: {
    summary: 'The index that a tag names',
    ...TAG,
    errors: TAG_ERRORS
  },
  setTag: {
    summary: 'Give an index a tag; one of that name moves',
    ...TAG,
    body: TagBodySchema,
    errors: { ...TAG_ERRORS, E_NO_INDEX: 404, E_INVALID_INDEX: 500 }
  },
  removeTag: {
    summary: 'Remove a tag; the answer says what it named',
    ...TAG,
    errors: TAG_ERRORS
  },
  gc: {
    summary: 'Remove blobs that nothing needs any more',
    body: GcBodySchema,
    ...JOB,
    errors: { E_BAD_REQUEST: 400 },
    jobErrors: ['E_NO_INDEX', 'E_INVALID_INDEX', 'E_CORRUPTION', 'E_ABORTED', 'E_INTERNAL']
  },
  evict: {
    summary: 'Free the weights of a model, and keep its name and documents',
    body: EvictBodySchema,
    ...JOB,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404 },
    jobErrors: ['E_KEPT', 'E_NO_INDEX', 'E_INVALID_INDEX', 'E_CORRUPTION', 'E_ABORTED', 'E_INTERNAL']
  },
  outdated: {
    summary: 'Ask the hub whether the revisions that models follow have newer commits',
    body: OutdatedBodySchema,
    ...JOB,
    errors: RESOLUTION,
    jobErrors: ['E_SOURCE_UNAVAILABLE', 'E_RATE_LIMITED', 'E_SOURCE_FORBIDDEN', 'E_ABORTED', 'E_INTERNAL']
  },
  makeSnapshot: {
    summary: 'A complete state of the store, held for a backup',
    body: Type.Object({}),
    status: 201,
    response: SnapshotSchema,
    errors: { E_BAD_REQUEST: 400, E_RATE_LIMITED: 503 }
  },
  holdSnapshot: {
    summary: 'Hold a snapshot for longer',
    params: IdParams,
    response: SnapshotSchema,
    errors: { E_NOT_FOUND: 404 }
  },
  releaseSnapshot: {
    summary: 'Release a snapshot',
    params: IdParams,
    response: SnapshotSchema,
    errors: { E_NOT_FOUND: 404 }
  },
  setPrivate: {
    summary: 'Share an artifact with nobody, or share it again',
    body: PrivateBodySchema,
    response: PrivateResultSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404 }
  },
  setPinned: {
    summary: 'Protect the bytes of an artifact from the quota, or stop protecting them',
    body: PinBodySchema,
    response: PinResultSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404 }
  },
  seed: {
    summary: 'Turn sharing on or off; takes effect at once',
    body: SeedBodySchema,
    response: SeedResultSchema,
    errors: { E_BAD_REQUEST: 400 }
  },
  seedLocal: {
    summary: 'Decide, once and for all, whether own models are shared',
    body: SeedLocalBodySchema,
    response: SeedLocalResultSchema,
    errors: { E_BAD_REQUEST: 400 }
  },
  uploadLimit: {
    summary: 'Limit the upload rate; takes effect at once',
    body: UploadLimitBodySchema,
    response: UploadLimitResultSchema,
    errors: { E_BAD_REQUEST: 400 }
  },
  peers: { summary: 'The connections with peers, the busiest first', response: PeerListSchema, errors: {} },
  downloadLimit: {
    summary: 'Limit the rate of all downloads together; takes effect at once',
    body: DownloadLimitBodySchema,
    response: DownloadLimitResultSchema,
    errors: { E_BAD_REQUEST: 400 }
  },
  status: {
    summary: 'The daemon, its store and its swarm client',
    response: StatusSchema,
    errors: {}
  },
  share: {
    summary: 'All that another node needs to import this artifact over the swarm',
    query: RefQuery,
    response: ShareResultSchema,
    errors: { ...RESOLUTION, E_NOT_IMPLEMENTED: 501, E_NOT_FOUND: 404 }
  },
  why: {
    summary: 'Who may get an artifact, through which door, and why',
    query: RefQuery,
    response: WhyResultSchema,
    errors: RESOLUTION
  },
  joinShare: {
    summary: 'Announce an artifact now if nothing prevents that, and return what another node needs',
    body: ShareBodySchema,
    response: ShareResultSchema,
    errors: { ...RESOLUTION, E_NOT_IMPLEMENTED: 501, E_NOT_FOUND: 404 }
  },
  adopt: {
    summary: 'Import files that are stored under other names',
    body: AdoptBodySchema,
    maxBodyBytes: MAX_ADOPT_BODY_BYTES,
    ...JOB,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_NOT_REGULAR: 400 },
    jobErrors: ['E_NOT_IMPORTABLE', 'E_INVALID_INDEX', 'E_SOURCE_NOT_REGULAR', 'E_NO_SPACE', 'E_ABORTED', 'E_INTERNAL']
  },
  adoptPlan: {
    summary: 'The quants that such an import would make',
    body: AdoptBodySchema,
    maxBodyBytes: MAX_ADOPT_BODY_BYTES,
    response: AdoptPlanSchema,
    errors: { E_BAD_REQUEST: 400, E_SOURCE_NOT_REGULAR: 400, E_NOT_IMPORTABLE: 502 }
  },
  makeView: {
    summary: 'Lay an artifact out in a folder that runtimes load',
    body: ViewBodySchema,
    response: ViewSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404, E_ABORTED: 409, E_NO_SPACE: 507 }
  },
  views: {
    summary: 'The views of this store',
    response: ViewListSchema,
    errors: {}
  },
  removeView: {
    summary: 'Remove a view',
    body: RemoveViewBodySchema,
    response: RemovedViewSchema,
    errors: { ...RESOLUTION, E_NOT_FOUND: 404 }
  },
  standingViews: {
    summary: 'The folders of tools that follow this store, after a look at each',
    response: StandingViewListSchema,
    errors: {}
  },
  addStandingView: {
    summary: "Let a tool's folder follow this store; saved in the daemon's configuration",
    body: StandingViewBodySchema,
    response: StandingViewSchema,
    errors: { E_BAD_REQUEST: 400, E_NO_SPACE: 507 }
  },
  removeStandingView: {
    summary: 'Take what is ours out of such a folder, and let it follow no more',
    body: RemoveStandingViewBodySchema,
    response: RemovedViewSchema,
    errors: { E_BAD_REQUEST: 400, E_NOT_FOUND: 404 }
  }
} as const satisfies Readonly<Record<RouteId, Contract>>

/** The routes of the documented version 1. */
const DOCUMENTED: ReadonlySet<string> = new Set([
  'resolve',
  'open',
  'ensure',
  'job',
  'jobs',
  'blob',
  'blobHead',
  'importLocal',
  'importHf',
  'importBt',
  'importCatalog',
  'verify',
  'models'
] satisfies RouteId[])

/** Every route of the management API (docs/api.md) as data, for the HTTP layer, the client and the OpenAPI document. */
export const ROUTES = Object.fromEntries(
  Object.entries(CONTRACTS).map(([id, contract]) => {
    const route: Route = { status: 200, additive: !DOCUMENTED.has(id), ...PATHS[id as RouteId], ...contract }
    return [id, route]
  })
) as {
  readonly [R in RouteId]: Pick<Route, 'status' | 'additive'> & (typeof PATHS)[R] & (typeof CONTRACTS)[R]
}
