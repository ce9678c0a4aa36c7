import type { OwnersChoice } from '@svc/classify'
import {
  type ArtifactSource,
  type Artifacts,
  type Documents,
  type Library,
  LibraryError,
  NO_HINTS,
  type Provenance,
  type RepoState,
  type SwarmHints,
  shownOrigin,
  tagBefore
} from '@svc/internal-state'
import { type IndexMember, type Manifest, type ModelIndex, mergeIndex } from '@svc/manifest'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import { type SealedArtifact, writeDocument } from './seal.ts'
import type { MayReplace } from './selection.ts'
import type { ImportSource } from './source.ts'

/** A state of the repository's index. */
export interface Committed {
  readonly indexDigest: Sha256Digest
  /** The artifacts that had one of these quants before. */
  readonly replaced: readonly Pick<IndexMember, 'quant' | 'manifest'>[]
  /** The tag of the former state, if one was requested and something changed. */
  readonly before: string | undefined
}

export type CommitContext = Pick<Library, 'store' | 'documents' | 'repos' | 'artifacts' | 'superseded' | 'clock'>

/**
 * Stage 5: merges the artifacts into the repository's index. Imports into one name take turns. Blobs are written first
 * and the state last, so that a crash leaves at worst unreferenced blobs.
 * @throws LibraryError `E_INVALID_INDEX` when the current index is corrupt or missing, `E_NOT_IMPORTABLE` with the quants as
 *   candidates where nothing may be replaced, `E_ABORTED` when it is no longer wanted: the state is then unchanged
 *   (spec route.13, add.45)
 */
export async function commitArtifacts(
  repo: RepoId,
  sealed: readonly SealedArtifact[],
  source: Pick<ImportSource, 'follows'> & {
    readonly provenanceOf: (manifest: Manifest) => Provenance
    readonly origin: ArtifactSource
    readonly hints?: SwarmHints
    /** When the import began. Default: now. */
    readonly beganAt?: string
    readonly mayReplace?: MayReplace
    readonly keepBefore?: boolean
    readonly companions?: Sha256Digest | undefined
    readonly choice?: OwnersChoice
    /** Called in the repository's turn; false: nothing is merged. */
    readonly isWanted?: () => Promise<boolean>
  },
  { store, documents, repos, artifacts, superseded: listeners, clock }: CommitContext
): Promise<Committed> {
  let superseded: readonly Sha256Digest[] = []
  let replaced: Committed['replaced'] = []
  let before: string | undefined
  const state = await repos.update(repo, async (current): Promise<RepoState> => {
    const older = current?.index === undefined ? undefined : await presentIndex(current.index, repo, documents)
    if ((await source.isWanted?.()) === false)
      throw new LibraryError('E_ABORTED', `the name ${formatRepoId(repo)} is no longer wanted`)
    replaced = replacedIn(older, sealed)
    await requireVacancy(repo, replaced, source, artifacts)
    const index = mergeIndex(
      older,
      sealed.map(({ member }) => member)
    )
    await writeDocument(store, index)
    const present = new Set(index.document.members.map(({ manifest }) => manifest))
    superseded = (older?.members ?? []).map(({ manifest }) => manifest).filter((manifest) => !present.has(manifest))
    for (const { manifest, member } of sealed) {
      await artifacts.record({
        manifestDigest: manifest.digest,
        record: member.distribution,
        source: {
          ...originOf(source.origin, manifest.document),
          ...(source.companions && { companions: source.companions }),
          ...(source.follows !== undefined && { followed: { [formatRepoId(repo)]: source.follows } })
        },
        provenance: source.provenanceOf(manifest.document),
        hints: source.hints ?? NO_HINTS,
        ...(source.beganAt !== undefined && { beganAt: source.beganAt }),
        ...(source.companions !== undefined && { companions: { [formatRepoId(repo)]: source.companions } }),
        ...(source.choice !== undefined && { choices: { [formatRepoId(repo)]: source.choice } })
      })
    }
    if (current?.index === index.digest) return current
    const tags = new Map(current?.tags)
    if (source.keepBefore === true && current?.index !== undefined && replaced.length > 0)
      before = tagBefore(tags, current.index, clock)
    return { index: index.digest, tags }
  })
  listeners.tell(superseded)
  return { indexDigest: state.index!, replaced, before }
}

/**
 * Refuses before the first byte what {@link commitArtifacts} will refuse for certain: a manifest names its repository and
 * commit of the hub, so one that names others is another one. Says nothing about sources without a repository, nor about
 * quants that only headers show. @throws LibraryError `E_NOT_IMPORTABLE`
 */
export async function requireVacancyBefore(
  repo: RepoId,
  quants: ReadonlySet<string>,
  source: Pick<ImportSource, 'annotations' | 'origin' | 'follows'> & { readonly mayReplace: MayReplace },
  { documents, repos, artifacts }: Pick<CommitContext, 'documents' | 'repos' | 'artifacts'>
): Promise<void> {
  if (source.mayReplace === true || source.annotations['svc.hf.repo'] === undefined) return
  const index = (await repos.read(repo.ns, repo.name))?.index
  if (index === undefined) return
  const { members } = await presentIndex(index, repo, documents)
  const others: Pick<IndexMember, 'quant' | 'manifest'>[] = []
  for (const { quant, manifest } of members.filter((member) => quants.has(member.quant))) {
    const annotations = (await documents.manifest(manifest))?.annotations
    if (HUB_FACTS.some((key) => annotations?.[key] !== source.annotations[key])) others.push({ quant, manifest })
  }
  await requireVacancy(repo, others, source, artifacts)
}

const HUB_FACTS = ['svc.hf.repo', 'svc.hf.revision']

/** The artifacts that lose their quant to another manifest. */
const replacedIn = (before: ModelIndex | undefined, sealed: readonly SealedArtifact[]): Committed['replaced'] =>
  (before?.members ?? [])
    .filter((own) => sealed.some(({ member }) => member.quant === own.quant && member.manifest !== own.manifest))
    .map(({ quant, manifest }) => ({ quant, manifest }))

async function requireVacancy(
  repo: RepoId,
  replaced: Committed['replaced'],
  source: { readonly mayReplace?: MayReplace; readonly origin: ArtifactSource } & Pick<ImportSource, 'follows'>,
  artifacts: Pick<Artifacts, 'read'>
): Promise<void> {
  const { mayReplace = true, origin, follows } = source
  if (mayReplace === true) return
  const name = formatRepoId(repo)
  const taken: string[] = []
  for (const { quant, manifest } of replaced) {
    const own = (await artifacts.read(manifest))?.source
    const isOlder =
      mayReplace === 'same-repository' && isSameRepository(own, origin) && isSameBranch(own, { origin, follows }, name)
    if (!isOlder) taken.push(quant)
  }
  if (taken.length === 0) return
  throw new LibraryError('E_NOT_IMPORTABLE', `${name} already has ${taken.join(', ')}, which is another artifact`, {
    candidates: taken.map((quant) => `${name}:${quant}`),
    advice: { to: 'choose-other-name' }
  })
}

/** Both from one repository of the hub, whatever the commit. */
const isSameRepository = (own: ArtifactSource | undefined, other: ArtifactSource): boolean =>
  own?.kind === 'hf' && other.kind === 'hf' && own.repo !== undefined && own.repo === other.repo

/** Whether what a name follows now is what it will follow; a commit alone follows nothing. */
function isSameBranch(
  own: ArtifactSource | undefined,
  { origin, follows }: { readonly origin: ArtifactSource; readonly follows: string | undefined },
  name: string
): boolean {
  const [before, now] = [own && shownOrigin(own, name).revision, follows ?? origin.branch]
  return !before || !now || before === now
}

/** The source, with only the upstream names of this artifact's own files. */
function originOf({ names = {}, ...origin }: ArtifactSource, { files }: Pick<Manifest, 'files'>): ArtifactSource {
  const own = Object.fromEntries(
    files.flatMap(({ name }) => (Object.hasOwn(names, name) ? [[name, names[name]!] as const] : []))
  )
  return Object.keys(own).length === 0 ? origin : { ...origin, names: own }
}

async function presentIndex(digest: Sha256Digest, { ns, name }: RepoId, documents: Documents): Promise<ModelIndex> {
  try {
    return await documents.index(digest)
  } catch (cause) {
    if (!(cause instanceof LibraryError)) throw cause
    throw new LibraryError(
      'E_INVALID_INDEX',
      `nothing was merged into ${ns}/${name}: its current index cannot be used: ${cause.message}`,
      { cause }
    )
  }
}
