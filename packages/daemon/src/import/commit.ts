import type { DiskBlobStore } from '@svc/cas'
import { type Manifest, type ModelIndex, mergeIndex } from '@svc/manifest'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Artifacts } from '../library/artifacts.ts'
import type { Documents } from '../library/documents.ts'
import type { ArtifactSource } from '../library/origin.ts'
import type { Provenance } from '../library/provenance.ts'
import type { RepoState, Repos } from '../library/repos.ts'
import type { Superseded } from '../library/superseded.ts'
import { type SealedArtifact, writeDocument } from './seal.ts'
import type { ImportSource } from './source.ts'

export interface CommitContext {
  readonly store: DiskBlobStore
  readonly documents: Documents
  readonly repos: Repos
  readonly artifacts: Artifacts
  readonly superseded: Pick<Superseded, 'tell'>
}

/**
 * Stage 5: merges the artifacts into the repository's index. Imports into one name take turns. Blobs are written first
 * and the state last, so that a crash leaves at worst unreferenced blobs.
 * @throws DaemonError `E_INVALID_INDEX` when the current index is corrupt or missing, `E_NOT_IMPORTABLE` with the quants as
 *   candidates where nothing may be replaced, `E_ABORTED` when it is not wanted any longer: the state is then unchanged
 *   (spec route.13, add.31)
 */
export async function commitArtifacts(
  repo: RepoId,
  sealed: readonly SealedArtifact[],
  source: Pick<ImportSource, 'hints'> & {
    readonly provenance: Provenance
    readonly origin: ArtifactSource
    /** False: a quant that the index has stays what it is. */
    readonly mayReplace?: boolean
    /** Asked in the repository's turn; after false nothing is merged. */
    readonly isWanted?: () => Promise<boolean>
  },
  { store, documents, repos, artifacts, superseded }: CommitContext
): Promise<Sha256Digest> {
  let replaced: readonly Sha256Digest[] = []
  const state = await repos.update(repo, async (current): Promise<RepoState> => {
    const before = current?.index === undefined ? undefined : await presentIndex(current.index, repo, documents)
    if ((await source.isWanted?.()) === false)
      throw new DaemonError('E_ABORTED', `nobody wants it as ${formatRepoId(repo)} any longer`)
    if (source.mayReplace === false) requireVacancy(repo, before, sealed)
    const index = mergeIndex(
      before,
      sealed.map(({ member }) => member)
    )
    await writeDocument(store, index)
    const present = new Set(index.document.members.map(({ manifest }) => manifest))
    replaced = (before?.members ?? []).map(({ manifest }) => manifest).filter((manifest) => !present.has(manifest))
    for (const { manifest, member } of sealed) {
      await artifacts.record({
        manifestDigest: manifest.digest,
        record: member.distribution,
        source: originOf(source.origin, manifest.document),
        provenance: source.provenance,
        hints: source.hints
      })
    }
    if (current?.index === index.digest) return current
    return { index: index.digest, tags: current?.tags ?? new Map() }
  })
  superseded.tell(replaced)
  return state.index!
}

function requireVacancy(repo: RepoId, before: ModelIndex | undefined, sealed: readonly SealedArtifact[]): void {
  const taken = sealed.flatMap(({ member: { quant, manifest } }) =>
    (before?.members ?? []).some((own) => own.quant === quant && own.manifest !== manifest) ? [quant] : []
  )
  if (taken.length === 0) return
  const name = formatRepoId(repo)
  throw new DaemonError(
    'E_NOT_IMPORTABLE',
    `${name} has ${taken.join(', ')} already, and it is another artifact; import this one under another name with --as`,
    { candidates: taken.map((quant) => `${name}:${quant}`) }
  )
}

/** The source, with only the upstream names of this artifact's own files. */
function originOf({ names, ...origin }: ArtifactSource, { files }: Pick<Manifest, 'files'>): ArtifactSource {
  const own = Object.fromEntries(
    files.flatMap(({ name }) => (names?.[name] === undefined ? [] : [[name, names[name]]]))
  )
  return Object.keys(own).length === 0 ? origin : { ...origin, names: own }
}

async function presentIndex(digest: Sha256Digest, { ns, name }: RepoId, documents: Documents): Promise<ModelIndex> {
  try {
    return await documents.index(digest)
  } catch (cause) {
    if (!(cause instanceof DaemonError)) throw cause
    throw new DaemonError(
      'E_INVALID_INDEX',
      `nothing was merged into ${ns}/${name}, its present index cannot be used: ${cause.message}`,
      { cause }
    )
  }
}
