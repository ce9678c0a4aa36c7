import { hash } from 'node:crypto'
import type { DiskBlobStore } from '@svc/cas'
import { gitBlobSha1 as gitNameOf, type Hub, type HubFile, type HubListing } from '@svc/hub'
import { timestampOf } from '@svc/internal-clock'
import {
  type Importer,
  type ImportRequest,
  type ImportSource,
  importSelectionOf,
  type Library,
  LibraryError,
  type LookOptions,
  type SignedListing,
  type UpstreamFile,
  type UpstreamRepo
} from '@svc/library/parts'
import { COMPANION_BOUNDS } from '@svc/manifest'
import { digestFromHex, type RepoId } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import { asLibrary } from './errors.ts'
import { MAX_SMALL_BYTES } from './listing-task.ts'
import { type HubPlan, type PlanDeps, type PlannedHubFile, planHub } from './plan.ts'
import { mayBeSigned, signedListing } from './signed-listing.ts'
import { type ListedSourceOptions, MAX_STRANGER_FILES, StrangerBytes, strangerKey } from './source.ts'
import type { StrangerListings } from './stranger-listing.ts'
import { hubTarget, requireAskedRepo } from './target.ts'

export interface HubUpstreamDeps extends PlanDeps, Pick<Library, 'clock' | 'trust'> {
  /** Without a token. */
  readonly hub: Hub
  readonly listings: Pick<StrangerListings, 'list'>
  readonly importer: Pick<Importer, 'isStrangers'>
  readonly sourceOf: (
    asked: string,
    listing: HubListing,
    options: Pick<ListedSourceOptions, 'branch' | 'strangers'>
  ) => ImportSource
}

/** As a person would import: public repositories spell quants in many ways. What is here stays. */
const NORMALIZED = { ...importSelectionOf({ names: 'normalized' }), mayReplace: false }

/** The reason of a plan's row for a file of the same model in another form. */
const OTHER_FORM = 'other-form'

/** Cached facts about a repository. */
interface CachedRepo {
  readonly asked: string
  readonly listing: HubListing
  readonly files: ReadonlyMap<string, HubFile>
  readonly branch: ListedSourceOptions['branch']
  /** Where a rule requires a signature: without the import's check, nothing is given that it does not cover. */
  readonly signed: SignedListing | undefined
  readonly onBytes: (bytes: number) => void
  plan?: Promise<HubPlan>
}

/** The hub as a mirror's source, with the rights of a stranger: no token (spec add.34, add.40). */
export class HubUpstream {
  readonly #deps: HubUpstreamDeps
  readonly #known = new WeakMap<UpstreamRepo, CachedRepo>()
  readonly #brought = new StrangerBytes()
  /** Commits whose import passed the check that a rule requires. */
  readonly #checked = new LRUCache<string, true>({ max: MAX_STRANGER_FILES })

  constructor(deps: HubUpstreamDeps) {
    this.#deps = deps
  }

  /** @throws LibraryError `E_SOURCE_FORBIDDEN` for anything gated or private */
  async look(asked: string, revision: string | undefined, options: LookOptions): Promise<UpstreamRepo> {
    requireAskedRepo({ repo: asked, ...(revision !== undefined && { revision }) })
    const { clock, hub, listings } = this.#deps
    const { isNamedOnly, branch, onBytes } = options
    const at = timestampOf(clock)
    const isDefault = revision === undefined
    const request = { repo: asked, revision, isNamedOnly: isNamedOnly && !isDefault }
    const { repoId, commit, files, leftOut, more } = await listings.list(request, onBytes)
    const listed = files.map((file) => hubFileOf(repoId, commit, file))
    const read = (file: HubFile): Promise<Uint8Array> => asLibrary(() => counting(hub, onBytes).read(file))
    const signed = await signedListing(asked, { repoId, files: listed, leftOut, more }, this.#deps, read)
    const given = files.filter((_, at) => signed === undefined || mayBeSigned(signed, listed[at]!))
    const found: UpstreamRepo = {
      repo: repoId,
      commit,
      files: new Map(given.map((file) => [file.name, file])),
      leftOut: { reasons: new Map(leftOut.map(({ name, reason }) => [name, reason])), more }
    }
    this.#known.set(found, {
      asked,
      listing: { repoId, commit, private: false, gated: false, restricted: false, files: listed },
      files: new Map(listed.map((file) => [file.path, file])),
      branch: isDefault ? { name: 'main', at } : branch,
      signed,
      onBytes
    })
    return found
  }

  /** The verified bytes of a small file. */
  async read(repo: UpstreamRepo, name: string): Promise<Uint8Array> {
    const file = this.#fileOf(repo, name)
    if (file.sizeBytes > MAX_SMALL_BYTES) throw new Error(`${name} is too large to be read at once`)
    const bytes = await asLibrary(() => this.#deps.hub.read(file))
    const digest = digestFromHex(hash('sha256', bytes))
    if (!isWhatWasListed(file, bytes, digest)) throw otherBytes(name, 'listing')
    if (this.#require(repo).signed?.covers(name, digest) === false) throw otherBytes(name, 'signature')
    return bytes
  }

  /** The artifact of a file; for a file that all artifacts share, the smallest one. */
  async artifactOf(repo: UpstreamRepo, name: string): Promise<{ readonly quant: string }> {
    const { files, artifacts } = await this.#planOf(repo)
    const row = files.find((file) => (file.upstream ?? file.name) === name)
    // one that a plan of everything leaves out
    if (row?.reason === OTHER_FORM && row.quant !== undefined) return { quant: row.quant }
    const smallest = artifacts.toSorted((a, b) => a.bytes - b.bytes)[0]
    const artifact = artifacts.find(({ quant }) => quant === row?.quant) ?? smallest
    if (artifact === undefined) throw new LibraryError('E_NOT_IMPORTABLE', `${repo.repo} has no artifact`)
    return { quant: artifact.quant }
  }

  /** Bytes that the import of an artifact would fetch now. */
  async missingBytesOf(repo: UpstreamRepo, quant: string): Promise<number> {
    const { files, artifacts } = await this.#planOf(repo)
    const isOwn = ({ action, reason, quant: of = quant }: PlannedHubFile): boolean =>
      of === quant && (action !== 'skip' || reason === OTHER_FORM)
    const own = files.filter(isOwn)
    const total = artifacts.find((each) => each.quant === quant)?.bytes ?? own.reduce((sum, { size }) => sum + size, 0)
    let heldBytes = 0
    for (const { name, upstream = name } of own)
      heldBytes += await heldBytesOf(this.#fileOf(repo, upstream), this.#deps.store, this.#brought)
    // the signature needs all companions: they are fetched with their artifact
    const { signed, listing } = this.#require(repo)
    const beside = signed === undefined ? 0 : sizeOfSmall(listing.files)
    return Math.max(0, total - heldBytes) + beside
  }

  /**
   * The import of one artifact: that of the default branch under the default name, unless the owner has something there;
   * any other under a name of the namespace `svc`.
   */
  async importOf(repo: UpstreamRepo, quant: string): Promise<ImportRequest> {
    const { asked, listing, branch } = this.#require(repo)
    const usual = hubTarget({ repo: asked })
    const isUsual = branch !== undefined && (await this.#deps.importer.isStrangers(usual))
    return {
      repo: isUsual ? usual : strangersName(listing),
      source: this.#deps.sourceOf(asked, listing, { branch, strangers: this.#brought }),
      selection: { ...NORMALIZED, quants: [quant] }
    }
  }

  /** An import of this commit ended well, and so passed the check that a rule requires. */
  passed(repo: UpstreamRepo): void {
    this.#checked.set(commitKey(repo), true)
  }

  /** Whether the hub has given a file's bytes to strangers since the start. */
  hasBrought(repo: UpstreamRepo, name: string): boolean {
    const isChecked = this.#require(repo).signed === undefined || this.#checked.has(commitKey(repo))
    return this.#brought.has(this.#fileOf(repo, name)) && isChecked
  }

  #planOf(repo: UpstreamRepo): Promise<HubPlan> {
    const found = this.#require(repo)
    const { asked, listing, branch, onBytes } = found
    const source = this.#deps.sourceOf(asked, listing, { branch, strangers: this.#brought })
    const hub = counting(this.#deps.hub, onBytes)
    return (found.plan ??= asLibrary(() => planHub(hub, listing, source, NORMALIZED, asked, this.#deps)))
  }

  #fileOf(repo: UpstreamRepo, name: string): HubFile {
    const file = this.#require(repo).files.get(name)
    if (file === undefined) throw new LibraryError('E_NOT_FOUND', `${JSON.stringify(name)} is not in ${repo.repo}`)
    return file
  }

  #require(repo: UpstreamRepo): CachedRepo {
    const found = this.#known.get(repo)
    if (found === undefined) throw new Error(`${repo.repo} has not been listed here`)
    return found
  }
}

const otherBytes = (name: string, than: string): LibraryError =>
  new LibraryError('E_NOT_IMPORTABLE', `the bytes of ${JSON.stringify(name)} do not match the ${than}`)

function sizeOfSmall(files: readonly HubFile[]): number {
  const { fileBytes, totalBytes } = COMPANION_BOUNDS
  const small = files.filter(({ sizeBytes }) => sizeBytes <= fileBytes)
  return Math.min(
    totalBytes,
    small.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  )
}

/** A hub that reports the bytes of each read before it starts. */
const counting = (hub: Hub, onBytes: (bytes: number) => void): Pick<Hub, 'read'> => ({
  read(file, range = { start: 0, end: file.sizeBytes }, options) {
    onBytes(range.end - range.start)
    return hub.read(file, range, options)
  }
})

/** The name for strangers' imports of a commit; no import of the owner can have it (spec ref.12, add.41). */
function strangersName({ repoId, commit }: HubListing): RepoId {
  const name = repoId
    .slice(repoId.indexOf('/') + 1)
    .toLowerCase()
    .slice(0, 80)
  const tag = hash('sha256', repoId.toLowerCase()).slice(0, 8)
  return { ns: 'svc', name: `${/^[a-z0-9]/.test(name) ? name : `x${name}`}.${commit.slice(0, 12)}.${tag}` }
}

const hubFileOf = (
  repoId: string,
  commit: string,
  { name, sizeBytes, sha256, gitBlobSha1 }: UpstreamFile
): HubFile => ({
  repoId,
  commit,
  path: name,
  sizeBytes,
  ...(sha256 !== undefined && { sha256 }),
  ...(gitBlobSha1 !== undefined && { gitBlobSha1 })
})

async function heldBytesOf(file: HubFile, store: DiskBlobStore, brought: StrangerBytes): Promise<number> {
  const { sha256, sizeBytes } = file
  if (sha256 === undefined) return 0
  const isHere = brought.has(file) && (await store.stat(sha256)) !== undefined
  return isHere ? sizeBytes : Math.min(sizeBytes, store.partialStatus(strangerKey(file))?.writtenBytes ?? 0)
}

function isWhatWasListed({ sha256, gitBlobSha1, sizeBytes }: HubFile, bytes: Uint8Array, digest: string): boolean {
  if (bytes.length !== sizeBytes) return false
  return sha256 === undefined ? gitNameOf(bytes) === gitBlobSha1 : digest === sha256
}

const commitKey = ({ repo, commit }: UpstreamRepo): string => `${repo} ${commit}`
