import { normalizedName, type OwnersChoice } from '@svc/classify'
import { HubError, type HubFile, type HubInfo, type HubListing } from '@svc/hub'
import { forEachLimited } from '@svc/internal-concurrency'
import {
  type ArtifactState,
  choiceUnder,
  type ImportSource,
  importSelectionOf,
  isPrivate,
  type Library,
  LibraryError,
  type Offload,
  planSelected,
  shownOrigin,
  upstreamName,
  type Work
} from '@svc/library/parts'
import type { Manifest } from '@svc/manifest'
import { formatRepoId, type Sha256Digest } from '@svc/ref'
import { probeAccess } from './access-probe.ts'
import { hubFailure, orAbsent } from './errors.ts'
import type { OwnersHub, SignedHub } from './owners-hub.ts'

/** Repositories asked about at once. */
const CONCURRENCY = 4
/** Per question; another day can answer it, too. */
const TRIES = 3
const MAX_REASON_LENGTH = 300

export interface OutdatedDeps
  extends Pick<Library, 'store' | 'repos' | 'artifacts' | 'documents' | 'resolver' | 'newer'> {
  readonly offload: Offload
  readonly owners: Pick<OwnersHub, 'now'>
  readonly sourceOf: (signed: SignedHub, asked: string, listing: HubListing) => ImportSource
}

/** An artifact under a name. */
interface NamedArtifact {
  readonly ref: string
  readonly as: string
  readonly quant: string
  readonly manifest: Sha256Digest
  readonly state: ArtifactState | undefined
}

/** One that follows a branch or tag of a repository. */
interface Following extends NamedArtifact {
  readonly state: ArtifactState
  readonly repo: string
  readonly revision: string
  readonly commit: string
}

/** The import that would bring a newer commit. */
interface HubUpgrade {
  readonly repo: string
  readonly revision: string
  readonly follows: string
  readonly as: string
  readonly quants: readonly string[]
  readonly names: 'normalized' | 'upstream'
  readonly aux: 'all' | readonly string[]
  readonly recognise?: 'opaque'
  readonly files?: readonly string[]
  readonly allowPickle?: boolean
  readonly private?: boolean
  readonly keepBefore: boolean
}

/** A model, compared with the branch or tag that it follows. */
interface OutdatedModel {
  /** `ns/name:quant` */
  readonly ref: string
  /**
   * `gone`: no such repository, revision or quant any more · `gated`: a newer one needs access · `pinned`: imported by its commit ·
   * `elsewhere`: not from the hub · `unknown`: no usable answer.
   */
  readonly status: 'same' | 'newer' | 'gone' | 'gated' | 'pinned' | 'elsewhere' | 'unknown'
  readonly origin?: ReturnType<typeof shownOrigin>
  /** What the revision points to now. */
  readonly commit?: string
  /** The repository's new name. */
  readonly movedTo?: string
  /** Of a newer one: its new or changed files, their bytes, and those of them that are here. */
  readonly files?: number
  readonly bytes?: number
  readonly bytesPresent?: number
  /** For people. */
  readonly reason?: string
  readonly upgrade?: HubUpgrade
}

/** In the order of the inventory. */
export interface OutdatedModels {
  readonly models: readonly OutdatedModel[]
}

type OutdatedVerdict = Omit<OutdatedModel, 'ref' | 'origin'>

/**
 * Asks which models have newer commits (spec add.51). The references, all models by default, are resolved at once.
 * @throws LibraryError, RefError for a reference that does not resolve
 */
export async function planOutdated(
  refs: readonly string[] | undefined,
  deps: OutdatedDeps
): Promise<(work: Work) => Promise<OutdatedModels>> {
  const wanted = refs && new Map<string, string>()
  for (const ref of refs ?? []) {
    const { ns, name, quant, manifestDigest } = await deps.resolver.resolve(ref)
    wanted!.set(`${formatRepoId({ ns, name })}:${quant ?? ''}`, manifestDigest)
  }
  return (work) => new OutdatedCheck(deps, work).run(wanted)
}

/** One question to the hub about all models. */
class OutdatedCheck {
  readonly #deps: OutdatedDeps
  readonly #work: Work
  readonly #verdicts = new Map<string, OutdatedVerdict>()
  #answers = 0
  #failure: unknown

  constructor(deps: OutdatedDeps, work: Work) {
    this.#deps = deps
    this.#work = work
  }

  /** @param wanted manifests by `ns/name:quant`: others are left out, and older ones than the present are pinned */
  async run(wanted: ReadonlyMap<string, string> | undefined): Promise<OutdatedModels> {
    const listed = await this.#models()
    const models = listed.filter(({ ref, manifest }) => wanted === undefined || wanted.get(ref) === manifest)
    const found = new Set(models.map(({ ref }) => ref))
    const older = [...(wanted?.keys() ?? [])].filter((ref) => !found.has(ref))
    const groups = Map.groupBy(followingOf(models), ({ repo, revision }) => JSON.stringify([repo, revision]))
    const signed = groups.size > 0 ? await this.#deps.owners.now() : undefined
    await forEachLimited([...groups.values()], CONCURRENCY, this.#work.signal, (group) => this.#ask(signed!, group))
    if (this.#answers === 0 && this.#failure !== undefined) throw hubFailure(this.#failure)
    for (const { ref, manifest } of models) {
      const { status, commit } = this.#verdicts.get(ref) ?? {}
      if (status !== 'unknown') this.#deps.newer.note(ref, manifest, status === 'newer' ? commit : undefined)
    }
    return {
      models: [
        ...models.map(
          ({ ref, as, state }): OutdatedModel => ({
            ref,
            ...(this.#verdicts.get(ref) ?? { status: state?.source.kind === 'hf' ? 'pinned' : 'elsewhere' }),
            ...(state !== undefined && { origin: shownOrigin(state.source, as) })
          })
        ),
        ...older.map((ref): OutdatedModel => ({ ref, status: 'pinned' }))
      ]
    }
  }

  async #models(): Promise<NamedArtifact[]> {
    const { repos, documents, artifacts } = this.#deps
    const models: NamedArtifact[] = []
    for await (const { ns, name, state } of repos.list(() => undefined)) {
      const as = formatRepoId({ ns, name })
      // the inventory reports unreadable ones
      const index = state.index && (await documents.index(state.index).catch(orAbsent))
      for (const { quant, manifest } of index?.members ?? []) {
        models.push({ ref: `${as}:${quant}`, as, quant, manifest, state: await artifacts.ifReadable(manifest) })
      }
    }
    return models
  }

  /** Asks about all models at one revision of a repository. */
  async #ask(signed: SignedHub, group: readonly Following[]): Promise<void> {
    const { repo, revision } = group[0]!
    const isOffline = this.#failure instanceof HubError && this.#failure.reason === 'unreachable'
    try {
      if (isOffline && this.#answers === 0) throw this.#failure
      const info = await signed.hub.info(repo, revision === 'main' ? undefined : revision, this.#timeouts())
      this.#answers++
      const moved = info.repoId.toLowerCase() === repo.toLowerCase() ? {} : { movedTo: info.repoId }
      for (const one of group) this.#verdicts.set(one.ref, { status: 'same', commit: info.commit, ...moved })
      const behind = group.filter(({ commit }) => commit !== info.commit)
      if (behind.length > 0) await this.#compare(signed, info, behind, moved)
    } catch (error) {
      this.#work.signal.throwIfAborted()
      if (!(error instanceof HubError)) throw error
      const status = statusOf(error)
      if (status === 'unknown') this.#failure ??= error
      else this.#answers++
      for (const { ref } of group)
        this.#verdicts.set(ref, { status, reason: error.message.slice(0, MAX_REASON_LENGTH) })
    }
  }

  async #compare(
    signed: SignedHub,
    info: HubInfo,
    group: readonly Following[],
    moved: Pick<OutdatedModel, 'movedTo'>
  ): Promise<void> {
    const { hub } = signed
    const listing = await hub.listing(info.repoId, info.commit, this.#timeouts())
    await probeAccess(hub, listing, this.#timeouts())
    for (const [commit, models] of Map.groupBy(group, (one) => one.commit)) {
      const before = await hub.listing(info.repoId, commit, this.#timeouts()).catch((error: unknown) => {
        // a branch may have been rewritten
        if (error instanceof HubError && error.code === 'E_UNKNOWN_REF') return undefined
        throw error
      })
      for (const model of models)
        this.#verdicts.set(model.ref, { ...(await this.#change(signed, listing, before, model)), ...moved })
    }
  }

  /** What an upgrade of a model would bring. */
  async #change(
    signed: SignedHub,
    listing: HubListing,
    before: HubListing | undefined,
    model: Following
  ): Promise<OutdatedVerdict> {
    const { store, documents, offload, sourceOf } = this.#deps
    const { commit } = listing
    const upgrade = upgradeOf(model, listing, await documents.manifest(model.manifest))
    const source = sourceOf(signed, listing.repoId, listing)
    try {
      const plan = await planSelected(source, importSelectionOf(upgrade), offload, this.#work.signal)
      const names = new Map(
        plan.listed.flatMap((name) => {
          // what is left out is listed, and has no file
          const paths = plan.files.get(name)?.joinedOf ?? [upstreamName(plan.source.origin, name)]
          return paths.map((path) => [path, name] as const)
        })
      )
      const isOfIt = ({ path }: HubFile): boolean => {
        const name = names.get(path) ?? path
        return (plan.recognition.uses.get(name)?.use ?? 'skip') !== 'skip' || plan.companions.files.has(name)
      }
      const known = new Map((before?.files ?? []).map((file) => [file.path, contentOf(file)]))
      const changed = listing.files.filter((file) => isOfIt(file) && known.get(file.path) !== contentOf(file))
      if (changed.length === 0) return { status: 'same', commit }
      let [bytes, bytesPresent] = [0, 0]
      for (const { sizeBytes, sha256 } of changed) {
        bytes += sizeBytes
        if (sha256 !== undefined && (await store.stat(sha256)) !== undefined) bytesPresent += sizeBytes
      }
      return { status: 'newer', commit, files: changed.length, bytes, bytesPresent, upgrade }
    } catch (error) {
      if (!(error instanceof LibraryError)) throw error
      const status = error.code === 'E_NO_MEMBER' ? 'gone' : 'unknown'
      return { status, commit, reason: error.message.slice(0, MAX_REASON_LENGTH) }
    } finally {
      await source.close()
    }
  }

  #timeouts() {
    const onWaiting = ({ message }: { readonly message: string }): void => this.#work.report({ message })
    return { signal: this.#work.signal, tries: TRIES, onWaiting }
  }
}

/** The models that follow a branch or tag, with the commit that they have. */
const followingOf = (models: readonly NamedArtifact[]): Following[] =>
  models.flatMap(({ state, ...model }) => {
    if (state === undefined) return []
    const { repo, revision, commit } = shownOrigin(state.source, model.as)
    const follows = repo !== undefined && revision !== undefined && commit !== undefined
    return follows ? [{ ...model, state, repo, revision, commit }] : []
  })

const contentOf = ({ sha256, gitBlobSha1 }: HubFile): string | undefined => sha256 ?? gitBlobSha1

/** The import of a newer commit as its owner imported the older one. */
function upgradeOf(
  { as, quant, state, revision }: Following,
  { repoId, commit }: HubListing,
  manifest: Pick<Manifest, 'files'> | undefined
): HubUpgrade {
  const files = manifest?.files ?? []
  const of = (role: string): number => files.filter((file) => file.role === role).length
  const isOne = of('vision-projector') < 2 && of('draft') < 2 && of('imatrix') + of('adapter') === 0
  return {
    repo: repoId,
    revision: commit,
    follows: revision,
    as,
    quants: [quant],
    names: files.every(({ name }) => normalizedName(name) === name) ? 'normalized' : 'upstream',
    aux: isOne ? ['one'] : 'all',
    ...(files.some(({ kind }) => kind === 'opaque') && asOpaque(choiceUnder(state, as).choice)),
    ...(isPrivate(state) && { private: true }),
    keepBefore: true
  }
}

/** The files as they are that their owner chose (spec rec.32). */
const asOpaque = ({
  names,
  files,
  allowPickle
}: OwnersChoice = {}): Pick<HubUpgrade, 'recognise' | 'names' | 'files' | 'allowPickle'> => ({
  recognise: 'opaque',
  names: names ?? 'upstream',
  ...(files && { files: [...files] }),
  ...(allowPickle === true && { allowPickle })
})

function statusOf({ code, reason }: HubError): 'gone' | 'gated' | 'unknown' {
  if (reason === 'gated' || reason === 'denied') return 'gated'
  if (code === 'E_UNKNOWN_REF' || ['hidden-or-absent', 'disabled', 'legal'].includes(reason)) return 'gone'
  return 'unknown'
}
