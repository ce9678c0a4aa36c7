import { withLease } from '@svc/cas'
import { type IndexMember, type ModelIndex, mergeIndex } from '@svc/manifest'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import { LibraryError } from './library-error.ts'
import type { Removals } from './removal.ts'
import type { RepoState } from './repos.ts'
import type { SignedModels } from './signed-models.ts'
import { oneChunk } from './small-blob.ts'
import type { StoreState } from './state.ts'

export interface NamingDeps extends Pick<StoreState, 'store' | 'repos' | 'documents' | 'artifacts'> {
  readonly removals: Removals
  readonly signed: SignedModels
}

/** Another name for what a name has. */
interface NewName {
  readonly from: RepoId
  /** Default: all quants, and the tags. */
  readonly quant?: string | undefined
  readonly to: RepoId
  /** Whether the first name is given up. */
  readonly isMove: boolean
  /** Whether a quant or a tag of the new name may change what it means. */
  readonly mayReplace: boolean
}

interface Named {
  readonly quants: readonly string[]
  readonly tags: readonly string[]
}

/**
 * Gives a repository, or one quant, another name, with what was imported under the first: companions, the owner's choice, the
 * branch that it follows. A move then removes the first name; if it is interrupted, both names stay, and it can be repeated.
 * @throws LibraryError `E_UNKNOWN_REF`, `E_NO_QUANT`, `E_NO_INDEX`, `E_INVALID_INDEX`; `E_NOT_IMPORTABLE` with the references
 *   that are taken, or with the rule of the new name that requires a signature; then nothing has changed
 */
export async function giveName(naming: NewName, deps: NamingDeps): Promise<Named> {
  const { from, quant, to, isMove } = naming
  const { repos, store, artifacts } = deps
  const named = await withLease(store, async () => {
    const given = await givenUnder(naming, deps)
    await requireSigned(given, naming, deps)
    await repos.update(to, async (current) => {
      const next = await merged(current, given, naming, deps)
      for (const manifest of given.manifests) await artifacts.nameAgain(manifest, formatRepoId(from), formatRepoId(to))
      return next
    })
    return given
  })
  // a tag names all quants of a version, of which one has moved
  const isWhole = quant === undefined
  if (isMove) await deps.removals.remove({ ...from, quant, allTags: isWhole, keepTags: !isWhole })
  return { quants: named.members.map((member) => member.quant), tags: [...named.tags.keys()].sort() }
}

interface Given {
  readonly members: readonly IndexMember[]
  readonly tags: ReadonlyMap<string, Sha256Digest>
  /** Of members and tags. */
  readonly manifests: ReadonlySet<Sha256Digest>
}

async function givenUnder({ from, quant }: NewName, { repos, documents }: NamingDeps): Promise<Given> {
  const state = await repos.read(from.ns, from.name)
  if (state === undefined) {
    const candidates = (await repos.names(from.ns)).slice(0, 100).map((name) => `${from.ns}/${name}`)
    throw new LibraryError('E_UNKNOWN_REF', `nothing is stored under ${formatRepoId(from)}`, { candidates })
  }
  const all = state.index === undefined ? [] : (await documents.index(state.index)).members
  const members = all.filter((member) => quant === undefined || member.quant === quant)
  if (quant !== undefined && members.length === 0)
    throw new LibraryError('E_NO_QUANT', `${formatRepoId(from)} has no quant ${JSON.stringify(quant)}`, {
      candidates: all.map((member) => member.quant)
    })
  const tags = quant === undefined ? state.tags : new Map<string, Sha256Digest>()
  const manifests = new Set(members.map(({ manifest }) => manifest))
  for (const index of new Set(tags.values()))
    for (const { manifest } of (await documents.index(index)).members) manifests.add(manifest)
  return { members, tags, manifests }
}

/** A rule `[[trust]]` for the new name holds as for an import under it. @throws LibraryError `E_NOT_IMPORTABLE` */
async function requireSigned({ manifests }: Given, { from, to }: NewName, deps: NamingDeps): Promise<void> {
  for (const manifest of manifests) {
    const state = await deps.artifacts.ifReadable(manifest)
    const complaint = state && (await deps.signed.complaint(state, formatRepoId(to), formatRepoId(from)))
    if (complaint !== undefined) throw new LibraryError('E_NOT_IMPORTABLE', `refused by the rule ${complaint}`)
  }
}

/** The state of the new name. @throws LibraryError as {@link giveName} */
async function merged(
  current: RepoState | undefined,
  { members, tags }: Given,
  { to, mayReplace }: NewName,
  { store, documents }: NamingDeps
): Promise<RepoState> {
  const older: ModelIndex | undefined = current?.index === undefined ? undefined : await documents.index(current.index)
  const taken = [
    ...members.filter(({ quant, manifest }) =>
      older?.members.some((own) => own.quant === quant && own.manifest !== manifest)
    ),
    ...[...tags].filter(([tag, index]) => (current?.tags.get(tag) ?? index) !== index).map(([tag]) => ({ quant: tag }))
  ].map(({ quant }) => `${formatRepoId(to)}:${quant}`)
  if (taken.length > 0 && !mayReplace)
    throw new LibraryError('E_NOT_IMPORTABLE', `${taken.join(', ')} is another artifact`, {
      candidates: taken,
      advice: { to: 'choose-other-name' }
    })
  const all = new Map([...(current?.tags ?? []), ...tags])
  if (members.length === 0) return { index: current?.index, tags: all }
  const index = mergeIndex(older, members)
  await store.ingest(oneChunk(index.bytes), { digest: index.digest, sizeBytes: index.bytes.length })
  return { index: index.digest, tags: all }
}
