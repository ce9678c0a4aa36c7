import type { ServerResponse } from 'node:http'
import { loopBudget } from '@svc/internal-concurrency'
import {
  type ArtifactFolder,
  type ArtifactState,
  type Artifacts,
  type ComingImport,
  companionsUnder,
  type Documents,
  type Door,
  type Holdings,
  LibraryError,
  modifiedAt,
  type Needed,
  type Repos,
  Revised,
  type SignedModels,
  type StandIn,
  UnreadableStateError,
  verdictOf
} from '@svc/library/parts'
import type { Companions } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { ViewError } from '@svc/view/view-error'
import { LocalRepos } from './local-repos.ts'
import { ServedFiles, type ServedFilesDeps } from './served-files.ts'
import { NotNowError, type RunningFetches } from './upstream.ts'

export interface ServedModelsDeps extends ServedFilesDeps {
  readonly artifacts: Artifacts
  readonly documents: Documents
  readonly holdings: Pick<Holdings, 'unprovenNow'>
  readonly repos: Repos
  readonly needed: Pick<Needed, 'isGiven'>
  readonly jobs: Pick<RunningFetches, 'openOf' | 'fetchOf'>
  readonly signed: Pick<SignedModels, 'complaint' | 'ruleFor'>
  /** False: incomplete artifacts are not shown. Default true. */
  readonly showsArriving?: boolean
  /** Whether the hub's mirror also shows models under their names here; else only repositories of the hub. */
  readonly namesAreRepos?: boolean
}

/** Limit of passes over all records for one answer. */
const MAX_WALKS = 8

/** Whether a model is here, but cannot be shown for lack of space. */
export const lacksSpace = (error: unknown): boolean => error instanceof ViewError && error.code === 'E_NO_SPACE'

/** Why a mirror cannot answer now. @throws an error of another kind */
export function notNowOf(error: unknown): NotNowError {
  if (error instanceof NotNowError) return error
  if (lacksSpace(error)) return new NotNowError(507, 'E_NO_SPACE', 'no space to lay the model out')
  throw error
}

/** The artifacts of each hub repository. */
interface ByRepo {
  /** Those that may be shown, the latest import first. */
  readonly shown: ReadonlyMap<string, readonly ArtifactState[]>
  /** Repositories with a withheld artifact. */
  readonly withheld: ReadonlySet<string>
}

/** A quant of a name, and its artifact with the companions under that name, for which its rule was checked. */
export interface ServedMember extends ArtifactFolder {
  readonly quant: string
  /** UTC, RFC 3339. */
  readonly modifiedAt?: string | undefined
  /** ArtifactFolder only while something fetches it. */
  readonly away?: true | undefined
}

interface ByName extends ArtifactFolder {
  /** `ns/name` */
  readonly name: string
}

/** An artifact by one of its names. */
export interface NamedMember extends ServedMember, ByName {
  /** `ns/name/quant/`, which precedes the names of its files. */
  readonly prefix: string
}

/** The mirrors that list models by their local names; the hub's, if {@link ServedModelsDeps.namesAreRepos}. */
type NameDoor = 'hub-mirror' | 'oci-mirror' | 's3-mirror'

interface Sending {
  readonly response: Pick<ServerResponse, 'destroy' | 'headersSent'>
  readonly manifest: Sha256Digest
  readonly door: Door
}

/** The artifacts of each name, `ns/name`, and all of them sorted by prefix. */
interface ServedNames {
  readonly byName: ReadonlyMap<string, readonly ServedMember[]>
  readonly sorted: readonly NamedMember[]
}

/**
 * The artifacts that mirrors may show: complete, needed ones that may leave by that door (spec add.37), and those that
 * the owner's running imports will make.
 */
export class ServedModels {
  readonly files: ServedFiles
  readonly #deps: ServedModelsDeps
  readonly #sending = new Set<Sending>()
  readonly #named = {
    'hub-mirror': new Revised<ServedNames>(),
    'oci-mirror': new Revised<ServedNames>(),
    's3-mirror': new Revised<ServedNames>()
  }
  readonly #asRepos = new LocalRepos()
  readonly #listed = new Revised<ByRepo>()

  constructor(deps: ServedModelsDeps) {
    this.#deps = deps
    this.files = new ServedFiles(deps)
    deps.artifacts.listen((manifest) => {
      // its companions may have changed
      this.files.forget(manifest)
      const { coming } = deps
      for (const sent of this.#sending)
        if (coming.digestOf(sent.manifest) === manifest || coming.get(sent.manifest) !== undefined)
          void this.#cutIfWithheld(sent)
    })
  }

  /** Sends bytes of an artifact, and stops if it becomes withheld. @returns the result of `send` */
  async whileGiven<T>(
    response: Pick<ServerResponse, 'destroy' | 'headersSent'>,
    manifest: Sha256Digest,
    door: Door,
    send: () => Promise<T>
  ): Promise<T> {
    const sent = { response, manifest, door }
    this.#sending.add(sent)
    try {
      return await send()
    } finally {
      this.#sending.delete(sent)
    }
  }

  async #cutIfWithheld({ response, manifest, door }: Sending): Promise<void> {
    const { given } = verdictOf(await this.#standing(manifest).catch(() => 'damaged' as const), door)
    // until the head is sent, the last check decides
    if (!given && response.headersSent) response.destroy()
  }

  /** The artifacts of a hub repository that may be shown now, the latest import first. `repo` is in lower case. */
  async ofRepo(repo: string): Promise<readonly ArtifactState[]> {
    const { needed } = this.#deps
    const shown: ArtifactState[] = []
    for (const state of (await this.#byRepo()).shown.get(repo) ?? [])
      if (
        this.#isHere(state.manifestDigest, state.away) &&
        (await needed.isGiven(state.manifestDigest)) &&
        (await this.#isSigned(state))
      )
        shown.push(state)
    return shown.length > 0 || this.#deps.namesAreRepos !== true ? shown : this.#ofName(repo)
  }

  async #ofName(name: string): Promise<readonly ArtifactState[]> {
    const states: ArtifactState[] = []
    for (const { manifest } of await this.named(name, 'hub-mirror')) {
      const state = await this.#shownState({ name, manifest }, 'hub-mirror')
      if (state !== undefined) states.push(state)
    }
    return this.#asRepos.of(name, states)
  }

  /** Whether a hub repository has a withheld artifact here: such a repository is not shown at all. */
  async withholds(repo: string): Promise<boolean> {
    const { artifacts } = this.#deps
    for (let walks = 0; walks < MAX_WALKS; walks++) {
      const { changes } = artifacts
      const { withheld } = await this.#byRepo()
      if (artifacts.changes === changes) return withheld.has(repo)
    }
    // records change faster than they are read
    return true
  }

  /**
   * The artifacts that a door gives at this moment. Ask last, and await nothing before the head of the response: what
   * was true when the request came may have changed since.
   */
  given(manifests: Iterable<Sha256Digest>, door: Door): Promise<ReadonlySet<Sha256Digest>> {
    return this.#those(manifests, async (manifest) => verdictOf(await this.#standing(manifest), door).given)
  }

  /** The record of an artifact, or of the one that a digest stands for during an import. */
  async #standing(manifest: Sha256Digest): Promise<ArtifactState | 'damaged' | undefined> {
    const { coming, artifacts } = this.#deps
    const model = coming.get(manifest)
    if (model === undefined) return artifacts.standing(coming.digestOf(manifest))
    if (await this.withholds(repoOf(model.by))) return undefined
    return { ...model.state, provenance: await model.by.provenanceOf(model.manifest) }
  }

  /**
   * The owner's running imports from public sources. An import into a repository with a withheld artifact is not shown:
   * it may make the same artifact again.
   */
  async coming(door: Door, isAsked: (by: ComingImport) => boolean): Promise<readonly ComingImport[]> {
    const coming: ComingImport[] = []
    for (const by of this.#deps.coming.imports.filter(isAsked)) {
      const { given } = verdictOf({ provenance: await by.provenanceOf() }, door)
      if (given && !(await this.withholds(repoOf(by)))) coming.push(by)
    }
    return coming
  }

  /** The models that such imports will make, as far as they are known and this door gives them. */
  async #comingModels(door: Door, isAsked: (by: ComingImport) => boolean): Promise<readonly StandIn[]> {
    const models = this.#deps.coming.imports.filter(isAsked).flatMap((by) => by.models)
    const standIns = models.map(({ standIn }) => standIn)
    const given = await this.given(standIns, door)
    return models.filter(({ standIn }) => given.has(standIn))
  }

  /** The import that is making the artifact a digest stands for. */
  comingBy(manifest: Sha256Digest): ComingImport | undefined {
    return this.#deps.coming.get(manifest)?.by
  }

  async #comingNamed(door: NameDoor, name?: string): Promise<NamedMember[]> {
    // a registry begins with the digest of the manifest, which is not known yet
    if (door !== 's3-mirror') return []
    const models = await this.#comingModels(door, (by) => name === undefined || by.name === name)
    return models.map(({ quant, standIn: manifest, companions, by: { name, beganAt: modifiedAt } }) => ({
      name,
      manifest,
      companions: companions?.digest,
      quant,
      modifiedAt,
      prefix: `${name}/${quant}/`
    }))
  }

  /** The artifacts that imports will make of a hub repository. `repo` is in lower case. */
  async comingOfRepo(repo: string): Promise<readonly ArtifactState[]> {
    return (await this.#comingModels('hub-mirror', (by) => repoOf(by) === repo)).map(({ state }) => state)
  }

  /** The artifacts that a door shows under their names at this moment, complete or not. Ask last, as with {@link given}. */
  shown<T extends ByName>(members: Iterable<T>, door: NameDoor): Promise<ReadonlySet<T>> {
    return this.#those(members, (member) => this.#isShownAs(member, door))
  }

  async #isShownAs({ name, manifest, companions }: ByName, door: NameDoor): Promise<boolean> {
    if (await this.#isAwaited(name, manifest, door)) return true
    const now = this.#deps.coming.digestOf(manifest)
    // a model that has just arrived may have other companions than it was to have
    const isSame = (member: ArtifactFolder): boolean => now !== manifest || member.companions === companions
    return (await this.named(name, door)).some((member) => member.manifest === now && isSame(member))
  }

  /** Those for which `isTrue` holds at one moment. */
  async #those<T>(all: Iterable<T>, isTrue: (one: T) => Promise<boolean>): Promise<ReadonlySet<T>> {
    const { artifacts } = this.#deps
    for (;;) {
      const { changes } = artifacts
      const those = new Set<T>()
      for (const one of all) if (await isTrue(one)) those.add(one)
      if (artifacts.changes === changes) return those
    }
  }

  /**
   * The artifacts of `ns/name` that may be shown now. A name with only private artifacts is looked up like one that
   * does not exist, so that the time of a response does not tell the two apart.
   */
  async named(name: string, door: NameDoor): Promise<readonly ServedMember[]> {
    const shown: ServedMember[] = []
    for (const member of (await this.#names(door)).byName.get(name) ?? []) {
      const state = await this.#shownState({ name, manifest: member.manifest }, door)
      if (state === undefined || !this.#isHere(member.manifest, state.away)) continue
      shown.push({ ...member, companions: companionsUnder(state, name) })
    }
    const coming = await this.#comingNamed(door, name)
    return [...shown, ...coming.filter(({ quant }) => !shown.some((each) => each.quant === quant))]
  }

  /** The artifacts of all names, sorted by prefix. Some may have become private since: ask {@link shown}. */
  async allNamed(door: NameDoor): Promise<readonly NamedMember[]> {
    const here = (await this.#names(door)).sorted.filter(({ manifest, away }) => this.#isHere(manifest, away))
    return sorted(here, await this.#comingNamed(door))
  }

  /** Whether it is here, or being fetched again. */
  #isHere(manifest: Sha256Digest, away: true | undefined): boolean {
    return away !== true || this.#deps.jobs.fetchOf(manifest) !== undefined
  }

  /** The time that mirrors show for one of the {@link awaited} artifacts. */
  async modifiedAt(manifest: Sha256Digest): Promise<string | undefined> {
    const state = await this.#deps.artifacts.ifReadable(manifest)
    return state && modifiedAt(state)
  }

  /** The {@link awaited} artifacts of all names. */
  async allAwaited(door: NameDoor): Promise<readonly ByName[]> {
    const all: ByName[] = []
    for (const name of await this.#deps.artifacts.futureNames()) all.push(...(await this.awaited(name, door)))
    return all
  }

  /** The artifacts that `ns/name` will have when their imports are complete, and that may be shown now. */
  async awaited(name: string, door: NameDoor): Promise<readonly ByName[]> {
    const { artifacts } = this.#deps
    const shown: ByName[] = []
    for (const manifest of await artifacts.toBeNamed(name)) {
      if (!(await this.#isAwaited(name, manifest, door))) continue
      shown.push({ name, manifest, companions: companionsUnder(await artifacts.ifReadable(manifest), name) })
    }
    return shown
  }

  /** Whether it is one of {@link awaited}. A complete artifact gets its name in a moment, or never. */
  async #isAwaited(name: string, manifest: Sha256Digest, door: NameDoor): Promise<boolean> {
    const { artifacts, holdings, jobs, signed, showsArriving = true } = this.#deps
    if (!showsArriving) return false
    const state = await artifacts.ifReadable(manifest)
    if (state?.futureName !== name) return false
    if ((await signed.ruleFor(state, name)) !== undefined) return false
    const isComing = state.incomplete === true
    if (!isComing && !jobs.openOf(manifest).some(({ as }) => as === name)) return false
    // its record does not name the bytes that came from another import since the fetch began
    const unproven = isComing ? await holdings.unprovenNow(manifest) : []
    const provenance = { ...state.provenance, ...(unproven.length > 0 && { unproven }) }
    return verdictOf({ provenance }, door).given
  }

  #names(door: NameDoor): Promise<ServedNames> {
    const { repos, artifacts } = this.#deps
    return this.#named[door].at(repos.changes + artifacts.shownChanges, () => this.#findNames(door))
  }

  async #isSigned(state: ArtifactState, name?: string): Promise<boolean> {
    return (await this.#deps.signed.complaint(state, name)) === undefined
  }

  async #shownState({ name, manifest }: ByName, door: NameDoor): Promise<ArtifactState | undefined> {
    const state = await this.#deps.artifacts.ifReadable(manifest)
    if (state === undefined || !isShown(state, door)) return undefined
    return (await this.#isSigned(state, name)) ? state : undefined
  }

  async #findNames(door: NameDoor): Promise<ServedNames> {
    const { repos, documents, log } = this.#deps
    const byName = new Map<string, readonly ServedMember[]>()
    const all: NamedMember[] = []
    const onCorrupt = (err: unknown): void => log.warn({ err }, 'a mirror cannot show a repository')
    for await (const { ns, name, state } of repos.list(onCorrupt)) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      if (state.index === undefined) continue
      try {
        const shown: NamedMember[] = []
        for (const { quant, manifest } of (await documents.index(state.index, { scan: true })).members) {
          const named = { name: `${ns}/${name}`, manifest }
          const shownState = await this.#shownState(named, door)
          if (shownState === undefined) continue
          const { away } = shownState
          const companions = companionsUnder(shownState, named.name)
          shown.push({
            ...named,
            companions,
            quant,
            modifiedAt: modifiedAt(shownState),
            away,
            prefix: `${named.name}/${quant}/`
          })
        }
        if (shown.length > 0) byName.set(`${ns}/${name}`, shown)
        all.push(...shown)
      } catch (error) {
        if (!(error instanceof LibraryError || error instanceof UnreadableStateError)) throw error
        onCorrupt(error)
      }
    }
    return { byName, sorted: all.sort((a, b) => (a.prefix < b.prefix ? -1 : 1)) }
  }

  /**
   * The companions of an artifact of the hub, kept and omitted; undefined for older imports, without companions. The
   * hub lists them, so none is the owner's own.
   */
  async companionsOf(state: ArtifactState): Promise<Companions | undefined> {
    const digest = companionsUnder(state)
    return digest && this.#deps.documents.companions(digest)
  }

  #byRepo(): Promise<ByRepo> {
    return this.#listed.at(this.#deps.artifacts.changes, () => this.#listRepos())
  }

  async #listRepos(): Promise<ByRepo> {
    const { artifacts, documents } = this.#deps
    const byRepo = new Map<string, ArtifactState[]>()
    const withheld = new Set<string>()
    const others: Sha256Digest[] = []
    for (const digest of await artifacts.digests()) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      const state = await artifacts.standing(digest)
      if (state === undefined) continue
      if (state === 'damaged' || !isOfHub(state)) {
        if (!verdictOf(state, 'hub-mirror').given) others.push(digest)
        continue
      }
      const key = repoOf(state)
      if (!verdictOf(state, 'hub-mirror').given) withheld.add(key)
      if (!isShown(state, 'hub-mirror')) continue
      byRepo.set(key, [...(byRepo.get(key) ?? []), state])
    }
    // one that came another way may belong to a repository, too
    for (const manifest of others) {
      const document = await documents.manifest(manifest).catch(() => undefined)
      const repo = document?.annotations['svc.hf.repo']
      if (repo !== undefined) withheld.add(repo.toLowerCase())
    }
    for (const states of byRepo.values()) states.sort((a, b) => ((a.importedAt ?? '') < (b.importedAt ?? '') ? 1 : -1))
    return { shown: byRepo, withheld }
  }
}

const isOfHub = ({ source: { kind, repo, revision } }: ArtifactState): boolean =>
  kind === 'hf' && repo !== undefined && revision !== undefined

/** The repository of an artifact from the hub, in lower case. */
const repoOf = ({ source }: Pick<ArtifactState, 'source'>): string => source.repo!.toLowerCase()

/** Sorted by prefix, with one artifact for each: the one that is here, if there is one. */
export function sorted(here: readonly NamedMember[], coming: readonly NamedMember[]): readonly NamedMember[] {
  if (coming.length === 0) return here
  const taken = new Set(here.map(({ prefix }) => prefix))
  return [...here, ...coming.filter(({ prefix }) => !taken.has(prefix))].sort((a, b) => (a.prefix < b.prefix ? -1 : 1))
}

const isShown = (state: ArtifactState, door: Door): boolean => state.incomplete !== true && verdictOf(state, door).given
