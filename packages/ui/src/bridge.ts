import type {
  ImportBtBody,
  ImportHfBody,
  ImportLocalBody,
  ImportOciBody,
  ImportPlan,
  Inventory,
  Job,
  PeerList,
  RemovedModel,
  SearchResult,
  ShareResult,
  WhyResult
} from '@svc/client/protocol'

/** A call that failed. `E_ENDED`: nobody answers, since `svc ui` has ended. */
export class BridgeError extends Error {
  readonly code: string
  readonly hint: string | undefined

  constructor(code: string, message: string, hint?: string) {
    super(message)
    this.code = code
    this.hint = hint
  }
}

interface Use {
  readonly ref: string
  /** Bytes that nothing else in the store needs. */
  readonly aloneBytes: number
}

/** What the store's bytes are for: each counts once in the models' `aloneBytes` and the three sums. */
export interface Disk {
  readonly models: readonly Use[]
  readonly repositories: readonly Use[]
  readonly sharedBytes: number
  readonly keptBytes: number
  readonly freeableBytes: number
}

export interface DoctorFinding {
  readonly check: string
  readonly level: 'ok' | 'note' | 'warn' | 'bad'
  readonly text: string
  readonly advice?: string
}

/** A plan, with what of it fits this machine. */
export interface JudgedPlan extends ImportPlan {
  /** The quant to choose without another reason. */
  readonly recommended?: string
  /** What is recommended and why, or why nothing is. */
  readonly advice?: string
  readonly fits: readonly {
    readonly quant: string
    readonly needBytes: number
    readonly fit: 'fits' | 'tight' | 'no'
  }[]
  readonly source: { readonly repo: string; readonly revision?: string; readonly quants?: readonly string[] }
}

/** What a pasted text stands for. */
export type Meaning =
  | { readonly kind: 'hf'; readonly repo: string; readonly quants?: readonly string[] }
  | ({ readonly kind: 'bt'; readonly magnet: string } & Partial<ImportBtBody>)
  | { readonly kind: 'local'; readonly path: string }
  /** A path of this machine where nothing is; `above` is the nearest folder that is there. */
  | { readonly kind: 'absent'; readonly path: string; readonly above?: string }
  | { readonly kind: 'oci'; readonly image: string }
  | { readonly kind: 'unknown' }

export interface RuntimeCommand {
  readonly runtime: string
  readonly command: string
}

/** What a model is; what its files do not say is undefined. */
export interface ModelContents {
  readonly family?: string
  readonly parameters?: number
  readonly contextTokens?: number
  readonly template?: string
  readonly license?: string
  /** The first of what runs code when it is loaded, or is malformed. */
  readonly caution?: string
  readonly files: readonly {
    readonly name: string
    readonly kind: string
    readonly role?: string
    readonly sizeBytes: number
  }[]
  /** The README beside the model, in Markdown. */
  readonly card?: string
}

/** A model of another tool on this disk. */
export interface ModelElsewhere {
  readonly tool: string
  readonly source: string
  /** The name that it would have here. */
  readonly as: string
  readonly quants: readonly string[]
  readonly sizeBytes: number
  readonly hereBytes: number
  readonly takesBytes: number
  readonly sharesBlocks: boolean
}

/** Whose token a hub says it is. */
export interface TokenAccount {
  readonly name?: string
  /** Of the daemon's environment, which it uses instead. */
  readonly variable?: string
}

interface Removal {
  readonly freeableBytes: number
  readonly sharedBytes: number
}

type CallBridge = <T>(method: string, path: string, body?: object) => Promise<T>
type Fetch = (path: string, init: RequestInit) => Promise<Response>

/** Calls by paths relative to the page, whose address the bridge chooses. */
const callWith =
  (fetch: Fetch): CallBridge =>
  async <T>(method: string, path: string, body?: object) => {
    // what changes something always has a body: the bridge takes no request that a foreign form could send
    const sent = body ?? (method === 'POST' || method === 'PUT' ? {} : undefined)
    const init = sent && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(sent) }
    const response = await fetch(path, { method, ...init }).catch((cause: unknown) => {
      throw new BridgeError('E_ENDED', String(cause))
    })
    const answer = (await response.json().catch(() => undefined)) as { error?: BridgeError } | undefined
    if (response.ok && answer !== undefined) return answer as T
    const { code = 'E_INTERNAL', message = `HTTP ${response.status}`, hint } = answer?.error ?? {}
    throw new BridgeError(code, message, hint)
  }

const query = (...refs: readonly string[]): string => refs.map((ref) => `ref=${encodeURIComponent(ref)}`).join('&')
const pathOf = (ref: string): string => ref.split(/[/:]/).map(encodeURIComponent).join('/')

/** What the page asks of the bridge: routes of the management API, and a few of its own. */
export function openBridge(fetch: Fetch) {
  const call = callWith(fetch)
  return {
    models: () => call<Inventory>('GET', 'v1/models'),
    why: (ref: string) => call<WhyResult>('GET', `v1/why?${query(ref)}`),
    share: (ref: string) => call<ShareResult>('POST', 'v1/share', { ref }),
    cancel: (id: string) => call<Job>('DELETE', `v1/jobs/${id}`),
    resume: (id: string) => call<Job>('PUT', `v1/jobs/${id}`),
    ensure: (ref: string) => call<Job>('POST', 'v1/ensure', { ref }),
    verify: (target: string) => call<Job>('POST', 'v1/verify', { target }),
    collect: (dryRun: boolean) => call<Job>('POST', 'v1/gc', { dryRun, graceSeconds: 0, views: true }),
    /** What unfinished downloads and corrupt files take, with all that no model needs. */
    dropLeftovers: () => call<Job>('POST', 'v1/gc', { graceSeconds: 0, leftovers: true }),
    job: (id: string) => call<Job>('GET', `v1/jobs/${id}`),
    setPrivate: (ref: string, isPrivate: boolean) => call<object>('PUT', 'v1/private', { ref, private: isPrivate }),
    setPinned: (ref: string, pinned: boolean) => call<object>('PUT', 'v1/pin', { ref, pinned }),
    evict: (ref: string) => call<Job>('POST', 'v1/evict', { ref }),
    seed: (seed: boolean) => call<object>('PUT', 'v1/seed', { seed }),
    peers: () => call<PeerList>('GET', 'v1/peers'),
    limitDownload: (bytesPerSecond: number) => call<object>('PUT', 'v1/download-limit', { bytesPerSecond }),
    limitUpload: (bytesPerSecond: number) => call<object>('PUT', 'v1/upload-limit', { bytesPerSecond }),
    seedLocal: (seedLocal: boolean) => call<object>('PUT', 'v1/seed-local', { seedLocal }),
    search: (words: string, cursor?: string) =>
      call<SearchResult>('GET', `v1/search?${new URLSearchParams({ q: words, ...(cursor && { cursor }) })}`),
    importHf: (body: ImportHfBody) => call<Job>('POST', 'v1/import/hf', body),
    importBt: (body: ImportBtBody) => call<Job>('POST', 'v1/import/bt', body),
    importLocal: (body: ImportLocalBody) => call<Job>('POST', 'v1/import/local', body),
    importOci: (body: ImportOciBody) => call<Job>('POST', 'v1/import/oci', body),
    remove: (ref: string) => call<RemovedModel>('DELETE', `v1/models/${pathOf(ref)}`),
    disk: () => call<Disk>('GET', 'bridge/disk'),
    removal: (refs: readonly string[]) => call<Removal>('GET', `bridge/removal?${query(...refs)}`),
    facts: (ref: string) => call<ModelContents>('GET', `bridge/facts?${query(ref)}`),
    log: () => call<{ readonly place?: string; readonly lines: readonly string[] }>('GET', 'bridge/log'),
    tools: () =>
      call<{ readonly models: readonly ModelElsewhere[]; readonly warnings: readonly string[] }>('GET', 'bridge/tools'),
    adopt: (model: { readonly tool: string; readonly source: string; readonly private: boolean }) =>
      call<Job>('POST', 'bridge/adopt', model),
    login: (token: string, replace: boolean) => call<TokenAccount>('POST', 'bridge/login', { token, replace }),
    doctor: () => call<{ readonly findings: readonly DoctorFinding[] }>('GET', 'bridge/doctor'),
    plan: (source: string) => call<JudgedPlan>('POST', 'bridge/plan', { source }),
    meaning: (text: string) => call<Meaning>('POST', 'bridge/source', { text }),
    commands: (ref: string) =>
      call<{ readonly commands: readonly RuntimeCommand[] }>('GET', `bridge/commands?${query(ref)}`),
    path: (ref: string) => call<{ readonly path: string }>('POST', 'bridge/path', { ref }),
    openFolder: (ref: string) =>
      call<{ readonly folder: string; readonly opened: boolean }>('POST', 'bridge/open-folder', { ref })
  }
}
export type BridgeClient = ReturnType<typeof openBridge>
