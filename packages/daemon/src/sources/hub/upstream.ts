import { createHash } from 'node:crypto'
import type { DiskBlobStore } from '@svc/cas'
import type { ImportPlan, Job } from '@svc/client/protocol'
import type { Hub, HubFile, HubListing } from '@svc/hub'
import { formatRepoId, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import { planWished } from '../../import/choice.ts'
import type { Importer } from '../../import/importer.ts'
import type { PlannedImport } from '../../import/plan.ts'
import type { ImportSource } from '../../import/source.ts'
import type { ImportWishes } from '../../import/wishes.ts'
import type { ArtifactSource } from '../../library/origin.ts'
import { hubFailure } from './errors.ts'
import { type PlanDeps, planHub } from './plan.ts'
import { hubTarget } from './target.ts'

/** A file of the hub that an import would keep. */
interface UpstreamFile {
  readonly name: string
  readonly sizeBytes: number
  /** For files in large-file storage; others have git's name. */
  readonly sha256: Sha256Digest | undefined
  readonly gitBlobSha1: string | undefined
  /** Whether to import its whole artifact: weights, their auxiliary files, and anything too large for memory. */
  readonly isLarge: boolean
}

/** A repository of the hub at a commit, with the files that an import would keep. */
interface UpstreamRepo {
  /** In the hub's spelling. */
  readonly repo: string
  readonly commit: string
  readonly files: ReadonlyMap<string, UpstreamFile>
}

/** The artifact of a file. */
interface UpstreamArtifact {
  readonly quant: string
}

/** The hub as a mirror's source (spec add.34). All errors are DaemonErrors with the codes of an import. */
export interface HubUpstream {
  /** @throws DaemonError `E_SOURCE_FORBIDDEN` also for anything gated or private, whatever access the token has */
  look(repo: string, revision: string | undefined): Promise<UpstreamRepo>
  /** The verified bytes of a small file. */
  read(repo: UpstreamRepo, name: string): Promise<Uint8Array>
  /** The artifact of a file; for a file that all artifacts share, the smallest one. */
  artifactOf(repo: UpstreamRepo, name: string): Promise<UpstreamArtifact>
  /** Bytes that the import of an artifact would fetch now. */
  missingBytesOf(repo: UpstreamRepo, quant: string): Promise<number>
  /**
   * Starts the import of one artifact, under the default name for an import of the repository.
   * @throws DaemonError `E_NOT_IMPORTABLE` if that name has another artifact of that quant, which stays
   */
  bring(repo: UpstreamRepo, quant: string): Promise<Job>
}

/** The objects of the hub source that this uses. */
export interface UpstreamDeps extends PlanDeps {
  readonly hub: Hub
  readonly importer: Importer
  readonly list: (body: { readonly repo: string; readonly revision?: string }) => Promise<HubListing>
  readonly sourceOf: (asked: string, listing: HubListing) => ImportSource
}

/** Larger files are not held in memory. */
const MAX_SMALL_BYTES = 64 << 20
/** The options of `svc import hf`: public repositories spell quants in many ways. */
const WISHES: ImportWishes = { normalizedNames: true, private: false, mayReplace: false }
const NEVER = new AbortController().signal

/** Cached facts about a repository. */
interface Known {
  readonly asked: string
  readonly listing: HubListing
  readonly files: ReadonlyMap<string, HubFile>
  plan?: Promise<ImportPlan>
}

/** Creates the hub source for mirrors. */
export function createUpstream({ hub, importer, list, sourceOf, ...planDeps }: UpstreamDeps): HubUpstream {
  const known = new WeakMap<UpstreamRepo, Known>()
  const require = (repo: UpstreamRepo): Known => {
    const found = known.get(repo)
    if (found === undefined) throw new Error(`${repo.repo} was not looked at here`)
    return found
  }
  const planOf = (repo: UpstreamRepo): Promise<ImportPlan> => {
    const { asked, listing } = require(repo)
    const source = sourceOf(asked, listing)
    return planHub(hub, listing, source, WISHES, asked, planDeps).catch((error: unknown) => {
      throw hubFailure(error)
    })
  }
  const fileOf = (repo: UpstreamRepo, name: string): HubFile => {
    const file = require(repo).files.get(name)
    if (file === undefined) throw new DaemonError('E_NOT_FOUND', `${JSON.stringify(name)} is not in ${repo.repo}`)
    return file
  }
  return {
    async look(asked, revision) {
      // refuses names that no import can have
      hubTarget({ repo: asked })
      const listing = await list({ repo: asked, ...(revision !== undefined && { revision }) })
      if (listing.restricted)
        throw new DaemonError('E_SOURCE_FORBIDDEN', `${listing.repoId} is private or gated: no mirror gives it away`)
      const planned = await planWished(sourceOf(asked, listing), WISHES, planDeps.offload, NEVER).catch(
        (error: unknown) => {
          throw hubFailure(error)
        }
      )
      const files = new Map(listing.files.map((file) => [file.path, file]))
      const found: UpstreamRepo = { repo: listing.repoId, commit: listing.commit, files: keptOf(planned, files) }
      known.set(found, { asked, listing, files })
      return found
    },
    async read(repo, name) {
      const file = fileOf(repo, name)
      if (file.sizeBytes > MAX_SMALL_BYTES) throw new Error(`${name} is too large to be read at once`)
      try {
        const bytes = await hub.read(file)
        if (isWhatWasListed(file, bytes)) return bytes
      } catch (error) {
        throw hubFailure(error)
      }
      throw new DaemonError('E_NOT_IMPORTABLE', `the bytes of ${JSON.stringify(name)} are not those that are listed`)
    },
    async artifactOf(repo, name) {
      const found = require(repo)
      const { files, artifacts } = await (found.plan ??= planOf(repo))
      const row = files.find((file) => (file.upstream ?? file.name) === name)
      const smallest = artifacts.toSorted((a, b) => a.bytes - b.bytes)[0]
      const artifact = artifacts.find(({ quant }) => quant === row?.quant) ?? smallest
      if (artifact === undefined) throw new DaemonError('E_NOT_IMPORTABLE', `${repo.repo} has no artifact`)
      return { quant: artifact.quant }
    },
    async missingBytesOf(repo, quant) {
      const found = require(repo)
      const { files, artifacts } = await (found.plan ??= planOf(repo))
      const total = artifacts.find((each) => each.quant === quant)?.bytes ?? 0
      const own = files.filter(
        ({ action, quant: of }) => (action === 'store' || action === 'present') && (of ?? quant) === quant
      )
      let heldBytes = 0
      for (const { name, upstream = name } of own)
        heldBytes += await heldBytesOf(fileOf(repo, upstream), planDeps.store)
      return Math.max(0, total - heldBytes)
    },
    async bring(repo, quant) {
      const { asked, listing } = require(repo)
      const target = hubTarget({ repo: asked })
      const present = await importer.memberOf(target, quant)
      if (present !== undefined && !isFrom(listing, present.state?.source))
        throw new DaemonError('E_NOT_IMPORTABLE', 'the name that it would have here has another artifact')
      const source = sourceOf(asked, listing)
      const wishes = { ...WISHES, quants: [quant] }
      try {
        return await importer.start({ kind: 'import-hf', ref: formatRepoId(target), repo: target, source, wishes })
      } catch (error) {
        throw hubFailure(error)
      }
    }
  }
}

/** The files that an import would keep, under the hub's names. */
function keptOf(
  { recognition, source }: PlannedImport,
  files: ReadonlyMap<string, HubFile>
): ReadonlyMap<string, UpstreamFile> {
  const kindOf = new Map(recognition.entries.map(({ name, kind }) => [name, kind]))
  const kept = new Map<string, UpstreamFile>()
  for (const [recognised, use] of recognition.uses) {
    if (use.use === 'skip') continue
    const names = source.origin.names ?? {}
    const name = Object.hasOwn(names, recognised) ? names[recognised]! : recognised
    const { sizeBytes, sha256, gitBlobSha1 } = files.get(name)!
    const isWeights = use.use === 'entry' && (kindOf.get(use.entry) ?? '').startsWith('weights.')
    kept.set(name, { name, sizeBytes, sha256, gitBlobSha1, isLarge: isWeights || sizeBytes > MAX_SMALL_BYTES })
  }
  return kept
}

const isFrom = ({ repoId, commit }: HubListing, source: ArtifactSource | undefined): boolean =>
  source?.kind === 'hf' && source.repo === repoId && source.revision === commit

async function heldBytesOf({ sha256, sizeBytes }: HubFile, store: DiskBlobStore): Promise<number> {
  if (sha256 === undefined) return 0
  return (await store.stat(sha256)) === undefined ? Math.min(sizeBytes, store.partialBytes(sha256)) : sizeBytes
}

function isWhatWasListed({ sha256, gitBlobSha1, sizeBytes }: HubFile, bytes: Uint8Array): boolean {
  if (bytes.length !== sizeBytes) return false
  if (sha256 !== undefined) return `sha256:${createHash('sha256').update(bytes).digest('hex')}` === sha256
  return createHash('sha1').update(`blob ${sizeBytes}\0`).update(bytes).digest('hex') === gitBlobSha1
}
