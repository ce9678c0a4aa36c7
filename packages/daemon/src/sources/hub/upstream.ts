import { hash } from 'node:crypto'
import type { DiskBlobStore } from '@svc/cas'
import type { ImportPlan, Job } from '@svc/client/protocol'
import { gitBlobSha1 as gitNameOf, type Hub, type HubFile, type HubListing } from '@svc/hub'
import { timestampOf } from '@svc/internal-clock'
import {
  type Importer,
  type ImportSource,
  importSelectionOf,
  type Library,
  type LookOptions,
  MAX_SIGNATURE_BYTES,
  SIGNATURE,
  type SignedListing,
  someOf,
  type UpstreamFile,
  type UpstreamRepo
} from '@svc/library/parts'
import { COMPANION_BOUNDS } from '@svc/manifest'
import { digestFromHex, formatRepoId, type RepoId } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import { DaemonError } from '../../errors.ts'
import type { ImportJobs } from '../../jobs/import-jobs.ts'
import type { JobRegistry } from '../../jobs/registry.ts'
import { throwHubFailure } from './errors.ts'
import { MAX_SMALL_BYTES, type StrangerListing } from './listing-task.ts'
import { type PlanDeps, planHub } from './plan.ts'
import { type HubSourceOptions, MAX_STRANGER_FILES, StrangerBytes, strangerKey } from './source.ts'
import type { StrangerListings } from './stranger-listing.ts'
import { hubTarget } from './target.ts'

export interface UpstreamDeps extends PlanDeps, Pick<Library, 'clock' | 'trust'> {
  /** Without a token. */
  readonly hub: Hub
  readonly listings: Pick<StrangerListings, 'list'>
  readonly importer: Pick<Importer, 'isStrangers'>
  readonly importJobs: ImportJobs
  readonly jobs: Pick<JobRegistry, 'over'>
  readonly sourceOf: (
    asked: string,
    listing: HubListing,
    options: Pick<HubSourceOptions, 'branch' | 'strangers'>
  ) => ImportSource
}

/** The options of `svc import hf`: public repositories spell quants in many ways. */
const NORMALIZED = { ...importSelectionOf({ names: 'normalized' }), mayReplace: false }

/** The reason of a plan's row for a file of the same model in another form. */
const OTHER_FORM = 'other-form'

/** Cached facts about a repository. */
interface CachedRepo {
  readonly asked: string
  readonly listing: HubListing
  readonly files: ReadonlyMap<string, HubFile>
  readonly branch: HubSourceOptions['branch']
  /** Where a rule requires a signature: without the import's check, nothing is given that it does not cover. */
  readonly signed: SignedListing | undefined
  readonly onBytes: (bytes: number) => void
  plan?: Promise<ImportPlan>
}

/**
 * The hub as a mirror's source, with the rights of a stranger: no token (spec add.34, add.40). Errors are
 * DaemonErrors of an import.
 */
export function createUpstream({
  clock,
  hub,
  listings,
  importer,
  importJobs,
  jobs,
  trust,
  sourceOf,
  ...planDeps
}: UpstreamDeps) {
  const known = new WeakMap<UpstreamRepo, CachedRepo>()
  const brought = new StrangerBytes()
  /** Commits whose import passed the check that a rule requires. */
  const checked = new LRUCache<string, true>({ max: MAX_STRANGER_FILES })
  const require = (repo: UpstreamRepo): CachedRepo => {
    const found = known.get(repo)
    if (found === undefined) throw new Error(`${repo.repo} has not been listed here`)
    return found
  }
  const planOf = (repo: UpstreamRepo): Promise<ImportPlan> => {
    const { asked, listing, branch, onBytes } = require(repo)
    const source = sourceOf(asked, listing, { branch, strangers: brought })
    return planHub(counting(hub, onBytes), listing, source, NORMALIZED, asked, planDeps).catch(throwHubFailure)
  }
  const fileOf = (repo: UpstreamRepo, name: string): HubFile => {
    const file = require(repo).files.get(name)
    if (file === undefined) throw new DaemonError('E_NOT_FOUND', `${JSON.stringify(name)} is not in ${repo.repo}`)
    return file
  }
  const signedOf = async (asked: string, listed: StrangersFiles, onBytes: CachedRepo['onBytes']) => {
    const rule = trust.ruleFor({ typed: [asked], claimed: [listed.repoId] })
    if (rule?.mode !== 'require') return undefined
    const file = listed.files.find(({ path }) => path === SIGNATURE)
    if (file === undefined || file.sizeBytes > MAX_SIGNATURE_BYTES) throw trust.refusal(rule)
    const bytes = await counting(hub, onBytes).read(file).catch(throwHubFailure)
    const signed = await trust.signed(rule, bytes, clock)
    const complaint = complaintOf(signed, listed)
    if (complaint !== undefined) throw trust.refusal(rule, complaint)
    return signed
  }
  return {
    /** @throws DaemonError `E_SOURCE_FORBIDDEN` for anything gated or private */
    async look(
      asked: string,
      revision: string | undefined,
      { isNamedOnly, branch, onBytes }: LookOptions
    ): Promise<UpstreamRepo> {
      // refuses names that no import can have
      hubTarget({ repo: asked, ...(revision !== undefined && { revision }) })
      const at = timestampOf(clock)
      const isDefault = revision === undefined
      const request = { repo: asked, revision, isNamedOnly: isNamedOnly && !isDefault }
      const { repoId, commit, files, leftOut, more } = await listings.list(request, onBytes)
      const listed = files.map((file) => hubFileOf(repoId, commit, file))
      const listing = { repoId, commit, private: false, gated: false, restricted: false, files: listed }
      const signed = await signedOf(asked, { repoId, files: listed, leftOut, more }, onBytes)
      const given = files.filter((_, at) => signed === undefined || mayBeSigned(signed, listed[at]!))
      const kept = new Map(given.map((file) => [file.name, file]))
      const reasons = new Map(leftOut.map(({ name, reason }) => [name, reason]))
      const found: UpstreamRepo = { repo: repoId, commit, files: kept, leftOut: { reasons, more } }
      known.set(found, {
        asked,
        listing,
        files: new Map(listed.map((file) => [file.path, file])),
        branch: isDefault ? { name: 'main', at } : branch,
        signed,
        onBytes
      })
      return found
    },
    /** The verified bytes of a small file. */
    async read(repo: UpstreamRepo, name: string): Promise<Uint8Array> {
      const file = fileOf(repo, name)
      if (file.sizeBytes > MAX_SMALL_BYTES) throw new Error(`${name} is too large to be read at once`)
      const bytes = await hub.read(file).catch(throwHubFailure)
      const wrong = (what: string): DaemonError =>
        new DaemonError('E_NOT_IMPORTABLE', `the bytes of ${JSON.stringify(name)} do not match the ${what}`)
      const digest = digestFromHex(hash('sha256', bytes))
      if (!isWhatWasListed(file, bytes, digest)) throw wrong('listing')
      if (require(repo).signed?.covers(name, digest) === false) throw wrong('signature')
      return bytes
    },
    /** The artifact of a file; for a file that all artifacts share, the smallest one. */
    async artifactOf(repo: UpstreamRepo, name: string): Promise<{ readonly quant: string }> {
      const found = require(repo)
      const { files, artifacts } = await (found.plan ??= planOf(repo))
      const row = files.find((file) => (file.upstream ?? file.name) === name)
      const smallest = artifacts.toSorted((a, b) => a.bytes - b.bytes)[0]
      // one that a plan of everything leaves out
      if (row?.reason === OTHER_FORM && row.quant !== undefined) return { quant: row.quant }
      const artifact = artifacts.find(({ quant }) => quant === row?.quant) ?? smallest
      if (artifact === undefined) throw new DaemonError('E_NOT_IMPORTABLE', `${repo.repo} has no artifact`)
      return { quant: artifact.quant }
    },
    /** Bytes that the import of an artifact would fetch now. */
    async missingBytesOf(repo: UpstreamRepo, quant: string): Promise<number> {
      const found = require(repo)
      const { files, artifacts } = await (found.plan ??= planOf(repo))
      // the signature needs all companions: they are fetched with their artifact
      const beside = found.signed === undefined ? 0 : sizeOfSmall(found.listing.files)
      const isOwn = ({ action, reason, quant: of = quant }: ImportPlan['files'][number]): boolean =>
        of === quant && (action !== 'skip' || reason === OTHER_FORM)
      const own = files.filter(isOwn)
      const total =
        artifacts.find((each) => each.quant === quant)?.bytes ?? own.reduce((sum, { size }) => sum + size, 0)
      let heldBytes = 0
      for (const { name, upstream = name } of own)
        heldBytes += await heldBytesOf(fileOf(repo, upstream), planDeps.store, brought)
      return Math.max(0, total - heldBytes) + beside
    },
    /**
     * Starts the import of one artifact: that of the default branch under the default name, unless the owner has
     * something there; any other under a name of the namespace `svc`. @throws DaemonError `E_NOT_IMPORTABLE` if that
     * name has another one of that quant
     */
    async bring(repo: UpstreamRepo, quant: string): Promise<Job> {
      const { asked, listing, branch } = require(repo)
      const usual = hubTarget({ repo: asked })
      const target = branch !== undefined && (await importer.isStrangers(usual)) ? usual : strangersName(listing)
      const source = sourceOf(asked, listing, { branch, strangers: brought })
      const selection = { ...NORMALIZED, quants: [quant] }
      const ref = formatRepoId(target)
      const job = await importJobs
        .start({ kind: 'import-hf', ref, repo: target, source, selection, lane: 'demand' })
        .catch(throwHubFailure)
      jobs.over(job.id).then(
        ({ state }) => void (state === 'done' && checked.set(commitKey(repo), true)),
        () => undefined
      )
      return job
    },
    /** Whether the hub has given a file's bytes to strangers since the start. */
    hasBrought: (repo: UpstreamRepo, name: string): boolean =>
      brought.has(fileOf(repo, name)) && (require(repo).signed === undefined || checked.has(commitKey(repo)))
  }
}

function sizeOfSmall(files: readonly HubFile[]): number {
  const { fileBytes, totalBytes } = COMPANION_BOUNDS
  const small = files.filter(({ sizeBytes }) => sizeBytes <= fileBytes)
  return Math.min(
    totalBytes,
    small.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  )
}

/** Unknown of a small file before it is read. */
const mayBeSigned = (signed: SignedListing, { path, sha256 }: Pick<HubFile, 'path' | 'sha256'>): boolean =>
  sha256 === undefined ? signed.names(path) : signed.covers(path, sha256)

/** A listing for strangers. */
type StrangersFiles = Pick<HubListing, 'repoId' | 'files'> & Pick<StrangerListing, 'leftOut' | 'more'>

/** The reason why an import of a listing would certainly be refused. */
function complaintOf(signed: SignedListing, { files, leftOut, more }: StrangersFiles): string | undefined {
  const wrong = files.find((file) => isBrought(file) && !mayBeSigned(signed, file))
  if (wrong !== undefined) return `changed, or not signed: ${someOf([wrong.path])}`
  const listed = new Set([...files.map(({ path }) => path), ...leftOut.map(({ name }) => name)])
  const missing = more > 0 ? [] : [...signed.paths].filter((path) => !listed.has(path))
  return missing.length === 0 ? undefined : `missing: ${someOf(missing)}`
}

const isBrought = ({ path, sizeBytes }: HubFile): boolean =>
  sizeBytes <= COMPANION_BOUNDS.fileBytes || /\.(?:gguf|safetensors)$/.test(path)

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
