import type { HubListing, RetryWait } from '@svc/hub'
import { timestampOf } from '@svc/internal-clock'
import type { ImportSource, Library } from '@svc/library/parts'
import { LRUCache } from 'lru-cache'
import { probeAccess } from './access-probe.ts'
import { asLibrary } from './errors.ts'
import { OlderVersions } from './older.ts'
import type { SignedHub } from './owners-hub.ts'
import { type ListedSourceOptions, listedSource } from './source.ts'
import type { AskedRepo } from './target.ts'

/** Longer rate limits are reported at once, since a client waits for its response. Within a job: five minutes. */
const MAX_WAIT_MS = 60_000
const MAX_ANSWERS = 1_000

export interface HubListingsDeps extends Pick<Library, 'store' | 'artifacts' | 'documents' | 'clock' | 'log'> {
  /** Files that no row recognizes are fetched, too. */
  readonly fetchUnrecognized: boolean
}

/** Lists repositories at a commit, and makes them import sources. */
export class HubListings {
  readonly #deps: HubListingsDeps
  /** When the hub said that a commit is the default branch's: a plan has no revision, and its commit is imported. */
  readonly #main = new LRUCache<string, string>({ max: MAX_ANSWERS })

  constructor(deps: HubListingsDeps) {
    this.#deps = deps
  }

  /** @throws LibraryError for a repository that the hub does not give */
  list({ hub }: SignedHub, { repo, revision }: AskedRepo, signal: AbortSignal): Promise<HubListing> {
    const onWaiting = (waiting: RetryWait): void => this.#tell(waiting, repo)
    const timeouts = { maxRateWaitMs: MAX_WAIT_MS, onWaiting, signal }
    return asLibrary(async () => {
      const at = timestampOf(this.#deps.clock)
      const listing = await hub.listing(repo, revision, timeouts)
      if (revision === undefined || revision === 'main') this.noteMain(listing, at)
      await probeAccess(hub, listing, timeouts)
      return listing
    })
  }

  /** The hub, or the owner, says that a commit is the default branch's. */
  noteMain({ repoId, commit }: HubListing, at: string = timestampOf(this.#deps.clock)): void {
    this.#main.set(`${repoId} ${commit}`, at)
  }

  /** @param asked the repository in the request */
  sourceOf(
    { hub, hasToken }: SignedHub,
    asked: string,
    listing: HubListing,
    options: Pick<ListedSourceOptions, 'branch' | 'strangers' | 'follows'> = {}
  ): ImportSource {
    const { clock, log, fetchUnrecognized } = this.#deps
    const isStrangers = options.strangers !== undefined
    return listedSource(hub, listing, {
      ...(isStrangers ? {} : { branch: this.#mainAt(listing), older: new OlderVersions(hub, listing, this.#deps) }),
      ...options,
      asked,
      onUnused: (err, path) =>
        log.info({ err, subject: `${listing.repoId}/${path}` }, 'hub: an older version is not used, or only in part'),
      fetchUnrecognized,
      hasToken,
      clock,
      warnings: [...renameWarning(asked, listing), ...shortWarning(listing)],
      onWaiting: (waiting, path) => this.#tell(waiting, `${listing.repoId}/${path}`)
    })
  }

  #mainAt({ repoId, commit }: HubListing): ListedSourceOptions['branch'] {
    const at = this.#main.get(`${repoId} ${commit}`)
    return at === undefined ? undefined : { name: 'main', at }
  }

  #tell({ reason, waitMs, message }: RetryWait, subject: string): void {
    this.#deps.log.info({ reason, waitMs, subject }, `hub: ${message}`)
  }
}

function renameWarning(asked: string, { repoId }: HubListing): string[] {
  if (asked.toLowerCase() === repoId.toLowerCase()) return []
  return [
    `the hub knows ${asked} as ${repoId}, which the documents name; it was imported under the name that was asked for`
  ]
}

const shortWarning = ({ leftOut }: HubListing): string[] =>
  leftOut === undefined ? [] : [`the mirror reports that ${leftOut} files of this commit are missing from its listing`]
