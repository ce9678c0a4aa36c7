import type { Inspection } from '@svc/classify'
import type { HubHits, HubListing, HubQuery } from '@svc/hub'
import type { ImportChoice } from '@svc/library'
import {
  type CompanionsRequest,
  type ConfirmPublic,
  type Importer,
  type ImportSource,
  importSelectionOf,
  type Library,
  type Offload,
  type Work
} from '@svc/library/parts'
import type { Manifest } from '@svc/manifest'
import { formatRepoId } from '@svc/ref'
import { HubClients, type HubClientsOptions } from './clients.ts'
import { type ConfirmDeps, confirmUnknown, createConfirmation, type HubConfirmation } from './confirm.ts'
import { HubCopies } from './copies.ts'
import { asLibrary } from './errors.ts'
import { inspectHub } from './inspect.ts'
import { HubListings } from './listings.ts'
import { throwWithBranches } from './other-branches.ts'
import { type OutdatedDeps, type OutdatedModels, planOutdated } from './outdated.ts'
import type { HubAccountHere, SignedHub } from './owners-hub.ts'
import { type HubPlan, planHub } from './plan.ts'
import { type AskedRepo, followedBy, hubTarget, requireAskedRepo } from './target.ts'
import { HubUpstream } from './upstream.ts'
import { hubOriginOf, requireWeightsOf } from './weights-listed.ts'

/** A person waits for the answer. */
const PROMPT = { tries: 2, maxRateWaitMs: 20_000 }

export interface ModelHubDeps
  extends Omit<OutdatedDeps, 'owners' | 'sourceOf'>,
    Pick<Library, 'trust' | 'clock' | 'log'> {
  readonly strangersOffload: Offload
  readonly importer: Pick<Importer, 'bringBack' | 'isStrangers'>
}

interface ModelHubOptions extends HubClientsOptions {
  /** Files that no row recognizes are fetched, too. */
  readonly fetchUnrecognized: boolean
}

/** A model hub, for one store: what can be imported from it, and what it says of the models that came from there. */
export class ModelHub {
  /** Whether it still has the artifacts that came from it. */
  readonly copies: HubCopies
  /** The hub as mirrors may see it. */
  readonly upstream: HubUpstream
  readonly #deps: ModelHubDeps
  readonly #clients: HubClients
  readonly #listings: HubListings
  readonly #confirmation: HubConfirmation
  readonly #stop = new AbortController()
  #confirming: Promise<void> | undefined

  /** @throws HubError when the endpoint or the given token is invalid */
  constructor(deps: ModelHubDeps, options: ModelHubOptions) {
    const clients = new HubClients(options)
    const { owners, others, strangers, listings } = clients
    const { fetchUnrecognized } = options
    this.#deps = deps
    this.#clients = clients
    this.#listings = new HubListings({ ...deps, fetchUnrecognized })
    this.#confirmation = createConfirmation(clients.anonymous, deps.clock)
    const sourceOf: HubListings['sourceOf'] = (...of) => this.#listings.sourceOf(...of)
    this.copies = new HubCopies({ ...deps, owners, others, sourceOf })
    this.upstream = new HubUpstream({
      ...deps,
      offload: deps.strangersOffload,
      hub: strangers,
      listings,
      sourceOf: (...of) => sourceOf({ hub: strangers, hasToken: false }, ...of)
    })
  }

  /** Asks the hub as the public sees it. */
  get confirmPublic(): ConfirmPublic {
    return this.#confirmation.confirm
  }

  /** Lists a repository as an import source. @throws LibraryError `E_INVALID`; for a repository that the hub does not give */
  async source(request: AskedRepo, signal: AbortSignal): Promise<ImportSource> {
    requireAskedRepo(request)
    const signed = await this.#clients.owners.now()
    const listing = await this.#listings.list(signed, request, signal)
    const follows = followedBy(request)
    // the owner says at which branch the commit was found, as an upgrade does
    if (follows === 'main') this.#listings.noteMain(listing)
    return this.#listings.sourceOf(signed, request.repo, listing, { follows })
  }

  /**
   * What an import would do. @param contextTokens adds the memory that each artifact needs for so many
   * @throws LibraryError as {@link source}; `E_BAD_LISTING` naming the branches where the default one has nothing to import
   */
  async plan(
    request: AskedRepo & ImportChoice,
    contextTokens: number | undefined,
    signal: AbortSignal
  ): Promise<HubPlan> {
    const as = formatRepoId(hubTarget(request))
    const selection = importSelectionOf(request)
    return this.#listed(request, signal, ({ hub }, listing, source) =>
      planHub(hub, listing, source, selection, as, { ...this.#deps, contextTokens }).catch((error: unknown) =>
        throwWithBranches(error, hub, request)
      )
    )
  }

  /** What would run code in a repository, and what is malformed. @throws LibraryError as {@link source} */
  inspect(request: AskedRepo, signal: AbortSignal): Promise<Inspection & { readonly commit: string }> {
    const { offload } = this.#deps
    return this.#listed(request, signal, async ({ hub }, { commit, files }) => ({
      commit,
      ...(await inspectHub(hub, files, { offload, signal }))
    }))
  }

  /** Whose token it is. @throws LibraryError `E_INVALID` if it is none, `E_SOURCE_FORBIDDEN` if the hub rejects it */
  account(token: string, signal: AbortSignal): Promise<HubAccountHere> {
    return asLibrary(() => this.#clients.owners.account(token, { ...PROMPT, signal }))
  }

  /** A page of the repositories that fit a query (spec add.53). @throws LibraryError */
  search(query: HubQuery): Promise<HubHits> {
    return asLibrary(async () => (await this.#clients.owners.now()).hub.search(query, PROMPT))
  }

  /** Whether models' branches or tags have newer commits. @throws as `planOutdated` */
  planOutdated(refs: readonly string[] | undefined): Promise<(work: Work) => Promise<OutdatedModels>> {
    const { owners } = this.#clients
    return planOutdated(refs, { ...this.#deps, owners, sourceOf: (...of) => this.#listings.sourceOf(...of) })
  }

  /** Where the companions of an artifact are (spec add.49). @throws LibraryError `E_SOURCE_UNAVAILABLE` for one of elsewhere */
  companionsOf(manifest: Manifest, ref: string): CompanionsRequest['source'] {
    const origin = hubOriginOf(manifest, ref)
    return (signal) =>
      this.#listed(origin, signal, async (_, listing, source) => {
        await requireWeightsOf(manifest, listing, origin, this.#deps.store)
        return source
      })
  }

  /** Confirms artifacts of unknown access, in the background, until `close`. */
  confirmUnknown(deps: ConfirmDeps): void {
    const { signal } = this.#stop
    this.#confirming = confirmUnknown(this.#confirmation, deps, signal).catch((error: unknown) => {
      if (!signal.aborted) this.#deps.log.warn({ err: error }, 'the hub was not asked which models are public')
    })
  }

  async close(): Promise<void> {
    this.#stop.abort()
    await this.#confirming
    await this.#clients.close()
  }

  #listed<T>(
    request: AskedRepo,
    signal: AbortSignal,
    use: (signed: SignedHub, listing: HubListing, source: ImportSource) => Promise<T>
  ): Promise<T> {
    requireAskedRepo(request)
    return asLibrary(async () => {
      const signed = await this.#clients.owners.now()
      const listing = await this.#listings.list(signed, request, signal)
      return use(signed, listing, this.#listings.sourceOf(signed, request.repo, listing))
    })
  }
}
