import type { Static, TSchema } from 'typebox'
import { type BlobHead, type BlobRead, type BlobSlice, openBlobRead, rangeHeader } from './blob-read.ts'
import { ClientError } from './errors.ts'
import type {
  AdoptBody,
  CompanionsBody,
  DownloadLimitBody,
  EnsureBody,
  EvictBody,
  GcBody,
  HubAccountBody,
  ImportBtBody,
  ImportCatalogBody,
  ImportHfBody,
  ImportHfPlanBody,
  ImportLocalBody,
  ImportOciBody,
  InspectHfBody,
  OutdatedBody,
  PinBody,
  PrivateBody,
  SeedBody,
  SeedLocalBody,
  UploadLimitBody,
  VerifyBody
} from './protocol/bodies.ts'
import type { Inventory, TagEntry } from './protocol/inventory.ts'
import type { Job } from './protocol/job.ts'
import type { NameBody, NamedModel } from './protocol/naming.ts'
import { PATHS, type RouteId } from './protocol/paths.ts'
import type { AdoptPlan, CatalogSearch, ImportPlan, Inspection } from './protocol/plan.ts'
import type { PinResult, PrivateResult, RemovedModel } from './protocol/removal.ts'
import type { OpenResult, ResolveResult } from './protocol/resolve.ts'
import type { ROUTES } from './protocol/routes.ts'
import type { HubAccountResult, SearchQuery, SearchResult } from './protocol/search.ts'
import type { Snapshot } from './protocol/snapshot.ts'
import { defaultSocketPath, isDefaultSocket, type SocketEnv } from './protocol/socket-path.ts'
import type {
  DownloadLimitResult,
  PeerList,
  SeedLocalResult,
  SeedResult,
  ShareResult,
  Status,
  UploadLimitResult
} from './protocol/status.ts'
import type { TagBody, TagList } from './protocol/tag.ts'
import type {
  RemovedView,
  RemoveStandingViewBody,
  RemoveViewBody,
  StandingView,
  StandingViewBody,
  View,
  ViewBody,
  ViewEntry
} from './protocol/view.ts'
import type { WhyResult } from './protocol/why.ts'
import { SocketTransport } from './transport.ts'
import { type WatchOptions, watchJob } from './watch.ts'

/** How a client finds its daemon, and how long it waits. All optional. */
export interface ClientOptions {
  /**
   * A given path is used unchecked. Default: {@link defaultSocketPath} for `env`; unless `SVC_SOCKET` names the path,
   * its folder must be the user's own, else calls reject with `E_UNSAFE_SOCKET`.
   */
  readonly socketPath?: string | undefined
  /** Default: this process's environment. */
  readonly env?: SocketEnv | undefined
  /** Aborts every call of this client. */
  readonly signal?: AbortSignal | undefined
  /** Longest wait for the head of a response. Default 60 s; ten times as long for imports, which may list a repository. */
  readonly timeoutMs?: number | undefined
}

/** What to remove with {@link Client.removeModel}: without `quant`, all quants. */
export interface ModelName {
  readonly ns: string
  readonly name: string
  readonly quant?: string | undefined
  /** Remove older versions, too; otherwise their tags protect what they contain. */
  readonly allTags?: boolean | undefined
}

/** A tag of a repository. */
export interface TagName {
  readonly ns: string
  readonly name: string
  readonly tag: string
}

/** Options of one call. `signal` aborts the call, not the daemon's work for it: cancel a job with `cancelJob`. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined
}

/**
 * The daemon's management API (docs/api.md), a method for each route. Each rejects with a `ClientError` of the daemon's
 * code, `E_UNREACHABLE`, `E_UNSAFE_SOCKET`, `E_NO_ANSWER` or `E_BAD_RESPONSE`; on abort with the signal's reason.
 * References may be canonical (`svc:///ns/name:quant`) or short (`ns/name:quant`).
 */
export interface Client {
  readonly socketPath: string
  resolve(ref: string, options?: CallOptions): Promise<ResolveResult>
  open(ref: string, options?: CallOptions): Promise<OpenResult>
  /** Returns the first snapshot of the job, which may already be terminal; a failed job does not reject. */
  ensure(body: EnsureBody, options?: CallOptions): Promise<Job>
  importLocal(body: ImportLocalBody, options?: CallOptions): Promise<Job>
  importHf(body: ImportHfBody, options?: CallOptions): Promise<Job>
  /** The plan of {@link importHf}; fetches no weights. */
  planHf(body: ImportHfPlanBody, options?: CallOptions): Promise<ImportPlan>
  /** What would run code in a repository of the hub, and what is malformed; reads headers and small files. */
  inspectHf(body: InspectHfBody, options?: CallOptions): Promise<Inspection>
  importBt(body: ImportBtBody, options?: CallOptions): Promise<Job>
  importCatalog(body: ImportCatalogBody, options?: CallOptions): Promise<Job>
  importOci(body: ImportOciBody, options?: CallOptions): Promise<Job>
  /** Fetches the companions of an artifact from the hub, and nothing else (spec add.49). */
  companions(body: CompanionsBody, options?: CallOptions): Promise<Job>
  /** With `names`, lists the quants that an import with normalized names would make. */
  searchCatalog(terms: string, options?: CallOptions & { readonly names?: 'normalized' }): Promise<CatalogSearch>
  /** One page; `next` of the result is the `cursor` of the following one. */
  search(query: SearchQuery, options?: CallOptions): Promise<SearchResult>
  /** Asks the hub whose token it is; stores nothing. */
  hubAccount(body: HubAccountBody, options?: CallOptions): Promise<HubAccountResult>
  verify(body: VerifyBody, options?: CallOptions): Promise<Job>
  /** With `limit` a page of at most so many names; its `next` is the `after` of the following one. */
  models(options?: CallOptions & { readonly limit?: number; readonly after?: string }): Promise<Inventory>
  /** Removes a model's name, or one quant of it; blobs stay until {@link gc}. */
  removeModel(model: ModelName, options?: CallOptions): Promise<RemovedModel>
  /** Gives a model a second name, or with `move` another one. */
  giveName(body: NameBody, options?: CallOptions): Promise<NamedModel>
  /** Releases a pinned import without a name. `digest` is that of its manifest. */
  unpin(digest: string, options?: CallOptions): Promise<RemovedModel>
  /** The owner's tags, by repository and tag. @param repo `ns/name`: only its tags */
  tags(repo?: string, options?: CallOptions): Promise<TagList>
  tag(name: TagName, options?: CallOptions): Promise<TagEntry>
  /** Gives the repository's current index a tag, or the one that `digest` names; a tag of that name moves. */
  setTag(tag: TagName & TagBody, options?: CallOptions): Promise<TagEntry>
  /** Removes a tag, and returns what it named. */
  removeTag(name: TagName, options?: CallOptions): Promise<TagEntry>
  /** Deletes everything that nothing needs any more; the job's result has `blobs` and `bytes`. */
  gc(body?: GcBody, options?: CallOptions): Promise<Job>
  /** Frees the weights of a model; the job's result has `blobs` and `bytes`. */
  evict(body: EvictBody, options?: CallOptions): Promise<Job>
  /** One complete state of the store, for a backup; held for two minutes, which {@link holdSnapshot} extends. */
  makeSnapshot(options?: CallOptions): Promise<Snapshot>
  holdSnapshot(id: string, options?: CallOptions): Promise<Snapshot>
  releaseSnapshot(id: string, options?: CallOptions): Promise<Snapshot>
  /** Asks the hub for newer commits; the job's result has `models`. */
  outdated(body?: OutdatedBody, options?: CallOptions): Promise<Job>
  setPrivate(body: PrivateBody, options?: CallOptions): Promise<PrivateResult>
  /** Protects the bytes of an artifact from the quota, or stops protecting them. */
  setPinned(body: PinBody, options?: CallOptions): Promise<PinResult>
  status(options?: CallOptions): Promise<Status>
  /** Turns sharing on or off, at once; saved in the daemon's configuration. */
  decideSeed(body: SeedBody, options?: CallOptions): Promise<SeedResult>
  /** Decides whether imports from disk are shared from now on; saved in the daemon's configuration. */
  decideSeedLocal(body: SeedLocalBody, options?: CallOptions): Promise<SeedLocalResult>
  /** The connections with peers, the busiest first. */
  peers(options?: CallOptions): Promise<PeerList>
  /** Limits the upload rate, at once; saved in the daemon's configuration. */
  limitUpload(body: UploadLimitBody, options?: CallOptions): Promise<UploadLimitResult>
  /** Limits the rate of all downloads together, at once; saved in the daemon's configuration. */
  limitDownload(body: DownloadLimitBody, options?: CallOptions): Promise<DownloadLimitResult>
  share(ref: string, options?: CallOptions): Promise<ShareResult>
  /** Who may get an artifact, through which door, and why (spec add.38). */
  why(ref: string, options?: CallOptions): Promise<WhyResult>
  /** Like {@link share}, but also announces the artifact now; if that is not possible, `note` says why. */
  joinShare(ref: string, options?: CallOptions): Promise<ShareResult>
  /** Imports files that are stored under other names, such as in the caches of other tools. */
  adopt(body: AdoptBody, options?: CallOptions): Promise<Job>
  /** The quants that {@link adopt} would make; stores nothing. */
  planAdopt(body: AdoptBody, options?: CallOptions): Promise<AdoptPlan>
  /** No time-out: mode `copy` takes long. After an abort the daemon continues; {@link removeView} cancels it. */
  makeView(body: ViewBody, options?: CallOptions): Promise<View>
  /** Sorted by path. */
  views(options?: CallOptions): Promise<readonly ViewEntry[]>
  /** Cancels a view that is being made; an earlier one at its place stays. */
  removeView(body: RemoveViewBody, options?: CallOptions): Promise<RemovedView>
  /** The tools' folders that follow the store, after a look at each. */
  standingViews(options?: CallOptions): Promise<readonly StandingView[]>
  /** Lets a tool's folder follow the store; saved in the daemon's configuration. No time-out: it may unpack files. */
  addStandingView(body: StandingViewBody, options?: CallOptions): Promise<StandingView>
  /** Takes what is ours out of such a folder, and lets it follow no more. */
  removeStandingView(body: RemoveStandingViewBody, options?: CallOptions): Promise<RemovedView>
  job(id: string, options?: CallOptions): Promise<Job>
  /** Newest first, then what an earlier daemon left unfinished, with `interrupted`. */
  jobs(options?: CallOptions): Promise<readonly Job[]>
  /**
   * Cancels a job and returns its last snapshot when it has ended: `failed` with `E_ABORTED`. Verified data is kept for
   * the next attempt. A job that had already ended is returned unchanged.
   */
  cancelJob(id: string, options?: CallOptions): Promise<Job>
  /** Repeats the request of an import that failed or was interrupted; verified data is kept. Returns the new job. */
  resumeJob(id: string, options?: CallOptions): Promise<Job>
  /** Yields snapshots until the job is terminal, the terminal one last. Leaving the loop does not affect the job. */
  watchJob(job: Job | string, options?: WatchOptions): AsyncGenerator<Job, void, undefined>
  /** The terminal snapshot. A failed job is returned, not thrown. */
  waitJob(job: Job | string, options?: WatchOptions): Promise<Job>
  /** `digest` is `sha256:<hex>` or bare hex. */
  headBlob(digest: string, options?: CallOptions): Promise<BlobHead>
  /** A blob or `[start, end)` of it; `end` is clamped, a `start` beyond the blob is `E_RANGE_INVALID`. */
  readBlob(digest: string, options?: BlobSlice & CallOptions): Promise<BlobRead>
  /** Closes idle connections. The client can be used again afterwards. */
  close(): void
}

type Routes = typeof ROUTES
/** What a route takes and answers, from its contract: a method of {@link Client} that says otherwise does not compile. */
type BodyOf<R extends RouteId> = Routes[R] extends { readonly body: infer S extends TSchema } ? Static<S> : never
type AnswerOf<R extends RouteId> = Routes[R] extends { readonly response: infer S extends TSchema } ? Static<S> : never

/** Adds the scheme to a short reference; anything else is passed on for the daemon to check. */
const canonical = (ref: string): string => (/^[^/:@\s]+\/[^/:@\s]+[:@]/.test(ref) ? `svc:///${ref}` : ref)

/** How many times as long these routes may take; 0: no time-out. */
const TIMEOUT_FACTORS: Readonly<Partial<Record<RouteId, number>>> = {
  importLocal: 10,
  importHf: 10,
  importHfPlan: 10,
  inspectHf: 10,
  importBt: 10,
  importCatalog: 10,
  importOci: 10,
  resumeJob: 10,
  search: 10,
  adopt: 10,
  adoptPlan: 10,
  makeSnapshot: 0,
  makeView: 0,
  addStandingView: 0,
  removeStandingView: 0
}

/** Creates a client; connects on the first call. */
export function createClient(options: ClientOptions = {}): Client {
  const { env = process.env } = options
  const user = process.geteuid?.() ?? 0
  const socketPath = options.socketPath ?? defaultSocketPath(env, user)
  const isDefault = options.socketPath === undefined && isDefaultSocket(env)
  const timeoutMs = options.timeoutMs ?? 60_000
  const transport = new SocketTransport(socketPath, isDefault ? user : undefined)

  const signalOf = (call: CallOptions | undefined): AbortSignal | undefined => {
    const signals = [options.signal, call?.signal].filter((signal) => signal !== undefined)
    return signals.length > 1 ? AbortSignal.any(signals) : signals[0]
  }
  const exchange = (route: RouteId, call: CallOptions | undefined, suffix = '') => ({
    method: PATHS[route].method,
    path: PATHS[route].path.replace(/\{[a-z]+\}$/, '') + suffix,
    signal: signalOf(call),
    timeoutMs: timeoutMs * (TIMEOUT_FACTORS[route] ?? 1)
  })
  const get = <R extends RouteId>(route: R, call: CallOptions | undefined, suffix?: string): Promise<AnswerOf<R>> =>
    transport.json(exchange(route, call, suffix))
  const post = <R extends RouteId>(route: R, body: BodyOf<R>, call: CallOptions | undefined): Promise<AnswerOf<R>> =>
    transport.json({ ...exchange(route, call), body })
  const ofTag = (route: 'tag' | 'setTag' | 'removeTag', { ns, name, tag }: TagName, call: CallOptions | undefined) => ({
    ...exchange(route, call),
    path: `/v1/tags/${[ns, name, tag].map(encodeURIComponent).join('/')}`
  })
  const query = (name: string, value: string): string => `?${name}=${encodeURIComponent(value)}`
  const poll = (id: string, signal?: AbortSignal): Promise<Job> => get('job', { signal }, encodeURIComponent(id))

  return {
    socketPath,
    resolve: (ref, call) => get('resolve', call, query('ref', canonical(ref))),
    open: (ref, call) => get('open', call, query('ref', canonical(ref))),
    ensure: ({ ref, ...body }, call) => post('ensure', { ref: canonical(ref), ...body }, call),
    importLocal: (body, call) => post('importLocal', body, call),
    importHf: (body, call) => post('importHf', body, call),
    inspectHf: (body, call) => post('inspectHf', body, call),
    planHf: (body, call) => post('importHfPlan', body, call),
    importBt: (body, call) => post('importBt', body, call),
    importCatalog: (body, call) => post('importCatalog', body, call),
    importOci: (body, call) => post('importOci', body, call),
    companions: ({ ref }, call) => post('companions', { ref: canonical(ref) }, call),
    searchCatalog: (terms, call) =>
      get('catalogSearch', call, query('q', terms) + (call?.names === undefined ? '' : `&names=${call.names}`)),
    search: (wanted, call) => get('search', call, `?${new URLSearchParams(wanted)}`),
    hubAccount: (body, call) => post('hubAccount', body, call),
    verify: ({ target }, call) => post('verify', { target: canonical(target) }, call),
    models: (call) => {
      const page = new URLSearchParams()
      if (call?.limit !== undefined) page.set('limit', String(call.limit))
      if (call?.after !== undefined) page.set('after', call.after)
      return get('models', call, page.size === 0 ? '' : `?${page}`)
    },
    removeModel: ({ ns, name, quant, allTags = false }, call) => {
      const segments = [ns, name, ...(quant === undefined ? [] : [quant])].map(encodeURIComponent)
      const path = `/v1/models/${segments.join('/')}${allTags ? '?tags=all' : ''}`
      return transport.json<AnswerOf<'removeModel' | 'removeQuant'>>({ ...exchange('removeModel', call), path })
    },
    giveName: (body, call) => post('giveName', body, call),
    unpin: (digest, call) => get('unpin', call, encodeURIComponent(digest)),
    tags: (repo, call) => get('tags', call, repo === undefined ? '' : query('repo', repo)),
    tag: (name, call) => transport.json<AnswerOf<'tag'>>(ofTag('tag', name, call)),
    setTag: ({ digest, ...name }, call) =>
      transport.json<AnswerOf<'setTag'>>({
        ...ofTag('setTag', name, call),
        body: digest === undefined ? {} : { digest }
      }),
    removeTag: (name, call) => transport.json<AnswerOf<'removeTag'>>(ofTag('removeTag', name, call)),
    gc: (body = {}, call) => post('gc', body, call),
    evict: ({ ref, ...body }, call) => post('evict', { ref: canonical(ref), ...body }, call),
    outdated: ({ refs } = {}, call) => post('outdated', refs === undefined ? {} : { refs: refs.map(canonical) }, call),
    makeSnapshot: (call) => post('makeSnapshot', {}, call),
    holdSnapshot: (id, call) => get('holdSnapshot', call, encodeURIComponent(id)),
    releaseSnapshot: (id, call) => get('releaseSnapshot', call, encodeURIComponent(id)),
    setPrivate: ({ ref, ...body }, call) => post('setPrivate', { ref: canonical(ref), ...body }, call),
    setPinned: ({ ref, ...body }, call) => post('setPinned', { ref: canonical(ref), ...body }, call),
    status: (call) => get('status', call),
    decideSeed: (body, call) => post('seed', body, call),
    decideSeedLocal: (body, call) => post('seedLocal', body, call),
    peers: (call) => get('peers', call),
    limitUpload: (body, call) => post('uploadLimit', body, call),
    limitDownload: (body, call) => post('downloadLimit', body, call),
    share: (ref, call) => get('share', call, query('ref', canonical(ref))),
    why: (ref, call) => get('why', call, query('ref', canonical(ref))),
    joinShare: (ref, call) => post('joinShare', { ref: canonical(ref) }, call),
    adopt: (body, call) => post('adopt', body, call),
    planAdopt: (body, call) => post('adoptPlan', body, call),
    makeView: ({ ref, ...body }, call) => post('makeView', { ref: canonical(ref), ...body }, call),
    views: async (call) => (await get('views', call)).views,
    removeView: (body, call) => post('removeView', body, call),
    standingViews: async (call) => (await get('standingViews', call)).views,
    addStandingView: (body, call) => post('addStandingView', body, call),
    removeStandingView: (body, call) => post('removeStandingView', body, call),
    job: (id, call) => get('job', call, encodeURIComponent(id)),
    resumeJob: (id, call) => get('resumeJob', call, encodeURIComponent(id)),
    cancelJob: (id, call) => get('cancelJob', call, encodeURIComponent(id)),
    jobs: async (call) => {
      const { jobs, interrupted = [] } = await get('jobs', call)
      return [...jobs, ...interrupted]
    },
    watchJob: (job, watch) => watchJob(job, poll, { ...watch, signal: signalOf(watch) }),
    waitJob: async (job, watch) => {
      let last: Job | undefined
      for await (const snapshot of watchJob(job, poll, { ...watch, signal: signalOf(watch) })) last = snapshot
      return last!
    },
    headBlob: async (digest, call) => {
      const response = await transport.send(exchange('blobHead', call, encodeURIComponent(digest)))
      response.resume()
      const sizeBytes = Number(response.headers['content-length'] ?? Number.NaN)
      if (Number.isSafeInteger(sizeBytes)) return { sizeBytes }
      throw new ClientError('E_BAD_RESPONSE', 'the daemon did not send the length of the blob')
    },
    readBlob: async (digest, call = {}) => {
      const range = rangeHeader(call)
      const signal = signalOf(call)
      const response = await transport.send({
        ...exchange('blob', call, encodeURIComponent(digest)),
        ...(range !== undefined && { headers: { range } })
      })
      return openBlobRead(response, call, signal)
    },
    close: () => transport.close()
  }
}
