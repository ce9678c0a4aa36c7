import { type BlobReader, CasError } from '@svc/cas'
import { type Hub, HubError, type HubFile, type HubListing } from '@svc/hub'
import { isCommit, type Library, sourceKey, upstreamName } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import { orAbsent } from './errors.ts'

export type OlderDeps = Pick<Library, 'store' | 'artifacts' | 'documents'>

/** An earlier version of a file in the store, open; the caller closes it. */
export interface HeldVersion {
  readonly file: HubFile
  readonly reader: BlobReader
}

/** An artifact of an earlier commit: its files by the hub's names. */
interface EarlierArtifact {
  readonly commit: string
  readonly importedAt: string
  readonly files: ReadonlyMap<string, Sha256Digest>
}

/** Earlier commits whose listings one import asks for. */
const MAX_LISTINGS = 2
const TRIES = 2

/**
 * The store's files of earlier commits of a repository. The hub is asked for its old listings again: they show which
 * hash its storage has for a blob, also for old imports, and no record has to keep such hashes.
 */
export class OlderVersions {
  readonly #hub: Pick<Hub, 'listing'>
  readonly #now: HubListing
  readonly #deps: OlderDeps
  readonly #listings = new Map<string, Promise<HubListing | undefined>>()
  #earlier: Promise<readonly EarlierArtifact[]> | undefined

  constructor(hub: Pick<Hub, 'listing'>, now: HubListing, deps: OlderDeps) {
    this.#hub = hub
    this.#now = now
    this.#deps = deps
  }

  /** The latest earlier version of a file, at the same path. */
  async of({ path, sha256 }: HubFile, signal: AbortSignal | undefined): Promise<HeldVersion | undefined> {
    for (const { commit, files } of await (this.#earlier ??= this.#find())) {
      const digest = files.get(path)
      if (digest === undefined || digest === sha256 || (await this.#deps.store.stat(digest)) === undefined) continue
      const file = (await this.#listed(commit, signal))?.files.find((one) => one.path === path)
      if (file?.sha256 !== digest || file.xetHash === undefined) continue
      const reader = await this.#deps.store.open(digest).catch(orGone)
      if (reader !== undefined) return { file, reader }
    }
    return undefined
  }

  async #find(): Promise<readonly EarlierArtifact[]> {
    const { artifacts, documents } = this.#deps
    const key = sourceKey({ kind: 'hf', repo: this.#now.repoId })
    const found: EarlierArtifact[] = []
    for await (const { manifestDigest, source, importedAt = '', incomplete } of artifacts.list(() => undefined, {
      cached: true
    })) {
      const { revision: commit = '' } = source
      if (sourceKey(source) !== key || !isCommit(commit) || commit === this.#now.commit || incomplete === true) continue
      const manifest = await documents.manifest(manifestDigest).catch(orAbsent)
      const files = (manifest?.files ?? []).map(({ name, digest }) => [upstreamName(source, name), digest] as const)
      found.push({ commit, importedAt, files: new Map(files) })
    }
    return found.sort((a, b) => b.importedAt.localeCompare(a.importedAt))
  }

  #listed(commit: string, signal: AbortSignal | undefined): Promise<HubListing | undefined> {
    const known = this.#listings.get(commit)
    if (known !== undefined) return known
    if (this.#listings.size === MAX_LISTINGS) return Promise.resolve(undefined)
    const asked = this.#hub
      .listing(this.#now.repoId, commit, { ...(signal && { signal }), tries: TRIES, maxRateWaitMs: 0 })
      .catch((error: unknown) => {
        // a branch may have been rewritten; in any case the file can be fetched
        if (!(error instanceof HubError)) throw error
        return undefined
      })
    this.#listings.set(commit, asked)
    return asked
  }
}

function orGone(error: unknown): undefined {
  if (!(error instanceof CasError && error.code === 'E_NOT_FOUND')) throw error
}
