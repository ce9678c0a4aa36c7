import type {
  HubAccountBody,
  ImportHfBody,
  ImportHfPlanBody,
  InspectHfBody,
  Inspection,
  Job,
  OutdatedBody,
  SearchQuery
} from '@svc/client/protocol'
import { createHub, type Hub, type HubListing, type HubOptions, type RetryWait } from '@svc/hub'
import { type Timer, timestampOf } from '@svc/internal-clock'
import { TRANSFER_NICE } from '@svc/internal-workers'
import {
  type CompanionsRequest,
  type Importer,
  type ImportSource,
  importSelectionOf,
  type Library,
  type Offload
} from '@svc/library/parts'
import type { Manifest } from '@svc/manifest'
import { formatRepoId } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import type { HubConfig } from '../../config/config.ts'
import { DaemonError } from '../../errors.ts'
import type { ImportJobs } from '../../jobs/import-jobs.ts'
import { probeAccess } from './access-probe.ts'
import { type ConfirmDeps, confirmUnknown, createConfirmation } from './confirm.ts'
import { HubCopies } from './copies.ts'
import { hubFailure } from './errors.ts'
import { HubDocumentReader } from './hub-documents.ts'
import { inspectHub } from './inspect.ts'
import { OlderVersions } from './older.ts'
import { throwWithBranches } from './other-branches.ts'
import { checkOutdated, type OutdatedDeps } from './outdated.ts'
import { atStart, OwnersHub, type SignedHub } from './owners-hub.ts'
import { planHub } from './plan.ts'
import { search } from './search.ts'
import { type HubSourceOptions, hubSource } from './source.ts'
import { STRANGER_HUB, StrangerListings } from './stranger-listing.ts'
import { followedBy, hubTarget } from './target.ts'
import { createUpstream } from './upstream.ts'
import { hubOriginOf, requireWeightsOf } from './weights-listed.ts'

/** Longer rate limits are reported at once, since a client waits for its response. Within a job: five minutes. */
const MAX_LISTING_WAIT_MS = 60_000
/** A person waits at the prompt. */
const MAX_ACCOUNT_WAIT_MS = 20_000
/** A client that waits for its response gets one before its connection is closed as idle. */
const MAX_RESPONSE_MS = 100_000

/** A daemon that just started has other things to do. */
const FIRST_CHECK_MS = 10 * 60_000
const DAY_MS = 24 * 3600_000

export interface HubDeps extends Omit<OutdatedDeps, 'owners' | 'sourceOf'>, Pick<Library, 'trust' | 'clock' | 'log'> {
  readonly config: { readonly hub: HubConfig }
  readonly version: string
  readonly strangersOffload: Offload
  readonly importer: Importer
  readonly importJobs: ImportJobs
  readonly listeners: { readonly mark: string }
}

/** Imports from the model hub. Bodies are validated. */
export type HubImports = ReturnType<typeof createHubImports>

/**
 * The hub source: one hub object for all jobs, so that limits apply to all their requests together.
 * @param more limits and timings of the hub client that differ from the defaults
 * @throws StartError when the endpoint or the token is invalid
 */
export function createHubImports(context: HubDeps, more: Pick<HubOptions, 'limits' | 'retry'> = {}) {
  const { clock, config, importJobs, log, version } = context
  const documents = new HubDocumentReader()
  const readDocument = documents.parse
  const { endpoint, skipUnrecognized } = config.hub
  const common = { ...(endpoint !== undefined && { endpoint }), userAgent: `svcd/${version}` }
  const { userAgent } = common
  const owners = new OwnersHub(config.hub, { userAgent, threadNice: TRANSFER_NICE, readDocument, ...more })
  // a mirror of this daemon does not count as another place
  const marked = `${userAgent} (${context.listeners.mark})`
  const others = new OwnersHub(config.hub, { ...more, userAgent: marked, readDocument })
  const open = (options: HubOptions): Hub =>
    atStart(() => createHub({ ...common, threadNice: TRANSFER_NICE, readDocument, ...options }))
  // requests for strangers carry no token, and use no connection that the owner's transfers would wait for (spec add.40)
  const strangersHub = open({ ...STRANGER_HUB, ...more })
  const listings = new StrangerListings({ ...common, ...STRANGER_HUB })

  // a client waits for the answer; without one, nothing leaves
  const anonymous = open({ ...more, retry: { ...more.retry, tries: 2 } })

  const confirmation = createConfirmation(anonymous, clock)
  const stop = new AbortController()
  let confirming: Promise<void> | undefined

  const branches = new BranchAnswers()
  const list = async (
    { hub }: SignedHub,
    { repo, revision }: ImportHfBody,
    signal?: AbortSignal
  ): Promise<HubListing> => {
    try {
      const onWaiting = (waiting: RetryWait): void => tell(waiting, repo)
      const timeouts = { maxRateWaitMs: MAX_LISTING_WAIT_MS, onWaiting, ...(signal && { signal }) }
      const at = timestampOf(clock)
      const listing = await hub.listing(repo, revision, timeouts)
      if (revision === undefined || revision === 'main') branches.keep(listing, at)
      await probeAccess(hub, listing, timeouts)
      return listing
    } catch (error) {
      throw hubFailure(error)
    }
  }
  const tell = ({ reason, waitMs, message }: RetryWait, subject: string): void =>
    log.info({ reason, waitMs, subject }, `hub: ${message}`)

  const sourceOf = (
    { hub, hasToken }: SignedHub,
    asked: string,
    listing: HubListing,
    options: Pick<HubSourceOptions, 'branch' | 'strangers' | 'follows'> = { branch: branches.of(listing) }
  ) =>
    hubSource(hub, listing, {
      ...options,
      asked,
      ...(options.strangers === undefined && { older: new OlderVersions(hub, listing, context) }),
      onUnused: (err, path) =>
        log.info({ err, subject: `${listing.repoId}/${path}` }, 'hub: an older version is not used, or only in part'),
      fetchUnrecognized: !skipUnrecognized,
      hasToken,
      clock,
      warnings: [...renameWarning(asked, listing), ...shortWarning(listing)],
      onWaiting: (waiting, path) => tell(waiting, `${listing.repoId}/${path}`)
    })

  const answered = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const late = new AbortController()
    const over = Promise.withResolvers<never>()
    const timer = clock.after(MAX_RESPONSE_MS, () => {
      const why = `the hub did not answer within ${MAX_RESPONSE_MS / 1000} s; try again later`
      over.reject(new DaemonError('E_SOURCE_UNAVAILABLE', why))
      late.abort()
    })
    try {
      return await Promise.race([work(late.signal), over.promise])
    } catch (error) {
      throw hubFailure(error)
    } finally {
      timer.cancel()
    }
  }

  const inspected = async (body: InspectHfBody, signal: AbortSignal): Promise<Inspection> => {
    hubTarget({ ...body, as: 'inspected/model' })
    const signed = await owners.now()
    const { commit, files } = await list(signed, body, signal)
    return { commit, ...(await inspectHub(signed.hub, files, { offload: context.offload, signal })) }
  }

  const outdated = (body: OutdatedBody): Promise<Job> => checkOutdated(body, { ...context, owners, sourceOf })
  const checks: Timer[] = []

  return {
    async importHf(body: ImportHfBody): Promise<Job> {
      const repo = hubTarget(body)
      const selection = importSelectionOf(body)
      return answered(async (signal) => {
        const signed = await owners.now()
        const listing = await list(signed, body, signal)
        const follows = followedBy(body)
        // the owner says at which branch the commit was found, as an upgrade does
        if (follows === 'main') branches.keep(listing, timestampOf(clock))
        const source = sourceOf(signed, body.repo, listing, { branch: branches.of(listing), follows })
        return importJobs.start({
          kind: 'import-hf',
          ref: formatRepoId(repo),
          repo,
          source,
          selection,
          signal,
          same: sameImport(body, listing)
        })
      })
    },
    async plan(body: ImportHfPlanBody) {
      const repo = hubTarget(body)
      const selection = importSelectionOf(body)
      return answered(async (signal) => {
        const signed = await owners.now()
        const listing = await list(signed, body, signal)
        const source = sourceOf(signed, body.repo, listing)
        const deps = { ...context, contextTokens: body.context }
        return planHub(signed.hub, listing, source, selection, formatRepoId(repo), deps).catch((error: unknown) =>
          throwWithBranches(error, signed.hub, body)
        )
      })
    },
    inspect: (body: InspectHfBody) => answered((signal) => inspected(body, signal)),
    account: ({ token }: HubAccountBody) =>
      answered((signal) => owners.account(token, { signal, tries: 2, maxRateWaitMs: MAX_ACCOUNT_WAIT_MS })),
    search: (query: SearchQuery) => answered(async () => search(query, await owners.now())),
    /** Whether models' branches or tags have newer commits. */
    outdated,
    /** Asks that once a day where `[hub] check` says so, until `close`. */
    checkDaily() {
      if (config.hub.check !== 'daily') return
      const ask = (): void => {
        outdated({}).catch((error: unknown) => log.warn({ err: error }, 'the hub was not asked for newer commits'))
      }
      checks.push(clock.after(FIRST_CHECK_MS, ask), clock.every(DAY_MS, ask))
    },
    /** The companions of an artifact from the hub (spec add.49). @throws DaemonError `E_SOURCE_UNAVAILABLE` for another one */
    companions({
      manifest,
      ...request
    }: Omit<CompanionsRequest, 'source'> & { readonly ref: string; readonly manifest: Manifest }): Job {
      const origin = hubOriginOf(manifest, request.ref)
      const source = async (signal: AbortSignal): Promise<ImportSource> => {
        const signed = await owners.now()
        const listing = await list(signed, origin, signal)
        await requireWeightsOf(manifest, listing, origin, context.store)
        return sourceOf(signed, origin.repo, listing)
      }
      return importJobs.startCompanions({ ...request, source })
    },
    /** Whether the hub still has the artifacts that came from it. */
    copies: new HubCopies({ ...context, owners, others, sourceOf }),
    /** The hub as mirrors may see it. */
    upstream: createUpstream({
      ...context,
      offload: context.strangersOffload,
      hub: strangersHub,
      listings,
      sourceOf: (...of) => sourceOf({ hub: strangersHub, hasToken: false }, ...of)
    }),
    /** Asks the hub as the public sees it. */
    confirmPublic: confirmation.confirm,
    /** Confirms artifacts of unknown access, in the background, until `close`. */
    confirmUnknown(deps: ConfirmDeps) {
      confirming = confirmUnknown(confirmation, deps, stop.signal).catch((error: unknown) => {
        if (!stop.signal.aborted) log.warn({ err: error }, 'the hub was not asked which models are public')
      })
    },
    close: async (): Promise<void> => {
      stop.abort()
      for (const check of checks) check.cancel()
      await confirming
      await Promise.all([owners, others, anonymous, strangersHub, listings, documents].map((each) => each.close()))
    }
  }
}

/** What makes two imports the same: the commit, and every field of the request. */
const sameImport = (body: ImportHfBody, { repoId, commit }: HubListing): string =>
  JSON.stringify([repoId, commit, Object.entries(body).sort(([a], [b]) => (a < b ? -1 : 1))])

function renameWarning(asked: string, { repoId }: HubListing): string[] {
  if (asked.toLowerCase() === repoId.toLowerCase()) return []
  return [
    `the hub knows ${asked} as ${repoId}, which the documents name; it was imported under the name that was asked for`
  ]
}

const shortWarning = ({ leftOut }: HubListing): string[] =>
  leftOut === undefined ? [] : [`the mirror reports that ${leftOut} files of this commit are missing from its listing`]

const MAX_ANSWERS = 1_000

/**
 * When the hub said that a commit is the default branch's: `svc` plans without a revision, and imports the plan's
 * commit.
 */
class BranchAnswers {
  readonly #at = new LRUCache<string, string>({ max: MAX_ANSWERS })

  keep({ repoId, commit }: HubListing, at: string): void {
    this.#at.set(`${repoId} ${commit}`, at)
  }

  of({ repoId, commit }: HubListing): HubSourceOptions['branch'] {
    const at = this.#at.get(`${repoId} ${commit}`)
    return at === undefined ? undefined : { name: 'main', at }
  }
}
