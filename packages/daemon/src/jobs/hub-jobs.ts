import type {
  HubAccountBody,
  HubAccountResult,
  ImportHfBody,
  ImportHfPlanBody,
  ImportPlan,
  InspectHfBody,
  Inspection,
  Job,
  OutdatedBody,
  SearchResult
} from '@svc/client/protocol'
import { HubError, type HubOptions, type HubQuery } from '@svc/hub'
import type { Clock, Timer } from '@svc/internal-clock'
import {
  type CompanionsRequest,
  type ImportSource,
  importSelectionOf,
  LibraryError,
  type UpstreamRepo
} from '@svc/library/parts'
import type { Manifest } from '@svc/manifest'
import { formatRepoId } from '@svc/ref'
import { type HubUpstream, hubTarget, ModelHub, type ModelHubDeps } from '@svc/sources/hub/parts'
import { hubTokenName, planWithMark } from '../advice.ts'
import type { HubConfig } from '../config/config.ts'
import type { DeepReadonly } from '../deep-readonly.ts'
import { StartError } from '../errors.ts'
import type { ImportJobs } from './import-jobs.ts'
import type { JobRegistry } from './registry.ts'

/** A client that waits for its response gets one before its connection is closed as idle. */
const MAX_RESPONSE_MS = 100_000

/** A daemon that just started has other things to do. */
const FIRST_CHECK_MS = 10 * 60_000
const DAY_MS = 24 * 3600_000

export interface HubJobsDeps extends ModelHubDeps {
  readonly config: { readonly hub: HubConfig }
  readonly version: string
  readonly jobs: JobRegistry
  readonly importJobs: ImportJobs
  readonly listeners: { readonly mark: string }
  readonly downloads: HubOptions['downloads']
}

/** The model hub behind the API: what takes long is a job, and what a client waits for has a time limit. */
export class HubJobs {
  readonly hub: ModelHub
  readonly #deps: HubJobsDeps
  readonly #checks: Timer[] = []

  /**
   * @param more limits and timings of the hub client that differ from the defaults
   * @throws StartError when the endpoint or the token is invalid
   */
  constructor(deps: HubJobsDeps, more: Pick<HubOptions, 'limits' | 'retry'> = {}) {
    const { config, version, listeners, downloads } = deps
    this.#deps = deps
    this.hub = atStart(
      () =>
        new ModelHub(deps, {
          ...more,
          access: config.hub,
          nameOf: (token) => hubTokenName(config.hub, token),
          userAgent: `svcd/${version}`,
          mark: listeners.mark,
          downloads,
          fetchUnrecognized: !config.hub.skipUnrecognized
        })
    )
  }

  async importHf(body: ImportHfBody): Promise<Job> {
    const repo = hubTarget(body)
    const selection = importSelectionOf(body)
    return this.#answered(async (signal) => {
      const source = await this.hub.source(body, signal)
      const ref = formatRepoId(repo)
      const same = sameImport(body, source)
      return this.#deps.importJobs.start({ kind: 'import-hf', ref, repo, source, selection, signal, same })
    })
  }

  plan({ context, ...body }: ImportHfPlanBody): Promise<DeepReadonly<ImportPlan>> {
    return this.#answered(async (signal) => planWithMark(await this.hub.plan(body, context, signal)))
  }

  inspect(body: InspectHfBody): Promise<DeepReadonly<Inspection>> {
    return this.#answered((signal) => this.hub.inspect(body, signal))
  }

  account({ token }: HubAccountBody): Promise<HubAccountResult> {
    return this.#answered((signal) => this.hub.account(token, signal))
  }

  search(query: HubQuery): Promise<DeepReadonly<SearchResult>> {
    return this.#answered(async () => {
      const { hits, cursor: next } = await this.hub.search(query)
      const entries = hits.map(({ repoId, ...hit }) => ({ repo: repoId, ...hit }))
      return { entries, ...(next !== undefined && { next }) }
    })
  }

  /** Asks whether models' branches or tags have newer commits. */
  async outdated({ refs }: OutdatedBody): Promise<Job> {
    const run = await this.hub.planOutdated(refs)
    const ref = refs?.length === 1 ? refs[0]! : 'all'
    return this.#deps.jobs.start({ kind: 'outdated', ref }, async (work) => ({ result: await run(work) }))
  }

  /** Asks that once a day where `[hub] check` says so, until `close`. */
  checkDaily(): void {
    const { config, clock, log } = this.#deps
    if (config.hub.check !== 'daily') return
    const ask = (): void => {
      this.outdated({}).catch((error: unknown) => log.warn({ err: error }, 'the hub was not asked for newer commits'))
    }
    this.#checks.push(clock.after(FIRST_CHECK_MS, ask), clock.every(DAY_MS, ask))
  }

  /** The companions of an artifact from the hub (spec add.49). @throws LibraryError `E_SOURCE_UNAVAILABLE` for another one */
  companions({
    manifest,
    ...request
  }: Omit<CompanionsRequest, 'source'> & { readonly ref: string; readonly manifest: Manifest }): Job {
    const source = this.hub.companionsOf(manifest, request.ref)
    return this.#deps.importJobs.startCompanions({ ...request, source })
  }

  /** The hub as mirrors may see it. */
  get upstream() {
    const { upstream } = this.hub
    return {
      look: (...of: Parameters<HubUpstream['look']>) => upstream.look(...of),
      read: (...of: Parameters<HubUpstream['read']>) => upstream.read(...of),
      artifactOf: (...of: Parameters<HubUpstream['artifactOf']>) => upstream.artifactOf(...of),
      missingBytesOf: (...of: Parameters<HubUpstream['missingBytesOf']>) => upstream.missingBytesOf(...of),
      hasBrought: (...of: Parameters<HubUpstream['hasBrought']>) => upstream.hasBrought(...of),
      bring: (repo: UpstreamRepo, quant: string) => this.#bring(repo, quant)
    }
  }

  async close(): Promise<void> {
    for (const check of this.#checks) check.cancel()
    await this.hub.close()
  }

  /** Imports an artifact for a client of a mirror. @throws LibraryError `E_NOT_IMPORTABLE` if its name has another one of that quant */
  async #bring(repo: UpstreamRepo, quant: string): Promise<Job> {
    const { upstream } = this.hub
    const request = await upstream.importOf(repo, quant)
    const ref = formatRepoId(request.repo)
    const job = await this.#deps.importJobs.start({ ...request, kind: 'import-hf', ref, lane: 'demand' })
    this.#deps.jobs.over(job.id).then(
      ({ state }) => void (state === 'done' && upstream.passed(repo)),
      () => undefined
    )
    return job
  }

  #answered<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return answered(this.#deps.clock, work)
  }
}

/** Makes the client. @throws StartError when the endpoint or the token is invalid */
function atStart<T>(make: () => T): T {
  try {
    return make()
  } catch (cause) {
    if (!(cause instanceof HubError)) throw cause
    const where = '[hub] endpoint, HF_ENDPOINT, SVC_HF_TOKEN, HF_TOKEN'
    throw new StartError(`the hub client cannot start: ${cause.message} (${where})`, { cause })
  }
}

/** @throws LibraryError `E_SOURCE_UNAVAILABLE` after {@link MAX_RESPONSE_MS} */
async function answered<T>(clock: Clock, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController()
  const over = Promise.withResolvers<never>()
  const timer = clock.after(MAX_RESPONSE_MS, () => {
    const why = `the hub did not answer within ${MAX_RESPONSE_MS / 1000} s; try again later`
    over.reject(new LibraryError('E_SOURCE_UNAVAILABLE', why))
    late.abort()
  })
  try {
    return await Promise.race([work(late.signal), over.promise])
  } finally {
    timer.cancel()
  }
}

/** What makes two imports the same: the commit, and every field of the request. */
const sameImport = (body: ImportHfBody, { origin: { repo, revision } }: ImportSource): string =>
  JSON.stringify([repo, revision, Object.entries(body).sort(([a], [b]) => (a < b ? -1 : 1))])
