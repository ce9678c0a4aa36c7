// One file, as every step reads and changes the same world.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job } from '@svc/client'
import { Doors, factsOf, LeakError } from './doors.ts'
import { type Habits, Machine } from './machine.ts'
import type { Arrival, Known } from './oracle.ts'
import { pick, type Random, seededRandom, tagsIn } from './tagged.ts'
import { type Parcel, type Repo, World } from './world.ts'

/** A history of random steps on two machines, whose doors are tried after each. */
export interface HistoryOptions {
  readonly seed: number
  readonly steps: number
  /** The folder for everything; one in memory makes it fast. */
  readonly base: string
}

export interface Outcome {
  readonly steps: number
  /** How often each kind of step was taken. */
  readonly taken: Readonly<Record<string, number>>
  /** How often each door gave something that may be had: a test in which nothing is given shows nothing. */
  readonly given: Readonly<Record<string, number>>
  /** What was found, and after which step. */
  readonly leak?: { readonly door: string; readonly step: string; readonly at: number; readonly what: string }
}

interface Place {
  readonly machine: Machine
  readonly doors: Doors
}

const NAMES = ['me/one', 'me/two', 'team/three'] as const
/** All doors for all artifacts, besides those that a step was about. */
const SWEEP_EVERY = 100
const SWEEP_AT_MOST = 12

/** Runs a history to its end, or to the first leak. @throws whatever else goes wrong */
export async function runHistory({ seed, steps, base }: HistoryOptions): Promise<Outcome> {
  const folder = mkdtempSync(join(base, 'provenance-'))
  const history = await History.start(folder, seededRandom(seed))
  const before = process.env.DOCKER_CONFIG
  process.env.DOCKER_CONFIG = join(folder, 'docker')
  try {
    for (let at = 1; at <= steps; at++) {
      try {
        await history.step(at)
      } catch (error) {
        if (!(error instanceof LeakError))
          throw new Error(`seed ${seed}, step ${at}, ${history.last}`, { cause: error })
        return { ...history.outcome(at), leak: { door: error.door, step: history.last, at, what: error.message } }
      }
    }
    return history.outcome(steps)
  } finally {
    await history.close()
    if (before === undefined) delete process.env.DOCKER_CONFIG
    else process.env.DOCKER_CONFIG = before
    rmSync(folder, { recursive: true, force: true })
  }
}

class History {
  last = 'start'
  readonly #world: World
  readonly #places: readonly Place[]
  readonly #random: Random
  readonly #taken: Record<string, number> = {}
  readonly #steps: readonly ((place: Place) => Promise<readonly Known[] | void>)[]
  #exports = 0

  private constructor(world: World, places: readonly Place[], random: Random) {
    this.#world = world
    this.#places = places
    this.#random = random
    const of = (count: number, step: (place: Place) => Promise<readonly Known[] | void>) => Array(count).fill(step)
    this.#steps = [
      ...of(8, this.importOwn),
      ...of(10, this.importHub),
      ...of(4, this.adopt),
      ...of(4, this.importLayout),
      ...of(4, this.importImage),
      ...of(4, this.importPublication),
      ...of(3, this.importFromOther),
      ...of(6, this.setPrivate),
      ...of(3, this.remove),
      ...of(1, this.collect),
      ...of(1, this.restart),
      ...of(3, this.exportLayout),
      ...of(3, this.push),
      ...of(3, this.publish),
      ...of(6, this.changeAccess),
      ...of(2, this.renameRepo),
      ...of(3, this.commit),
      ...of(2, this.nameForeignBytes),
      ...of(1, this.closeRegistry),
      ...of(70, this.askHubMirror),
      ...of(50, this.askWebseed),
      ...of(40, this.askSwarm),
      ...of(60, this.askOci)
    ]
  }

  static async start(folder: string, random: Random): Promise<History> {
    const world = await World.start(join(folder, 'world'))
    mkdirSync(join(folder, 'docker'))
    writeFileSync(join(folder, 'docker/config.json'), world.registry.dockerConfig)
    writeFileSync(join(folder, 'world/keys'), '[default]\naws_access_key_id = A\naws_secret_access_key = s\n', {
      mode: 0o600
    })
    const habits: Habits = {
      onDemand: random(4) > 0,
      seedRestricted: random(6) === 0,
      seedLocal: [undefined, true, false][random(3)]
    }
    const places: Place[] = []
    for (const name of ['a', 'b']) {
      mkdirSync(join(folder, name))
      const machine = await Machine.start(world, join(folder, name), habits)
      places.push({ machine, doors: new Doors(machine, world) })
    }
    return new History(world, places, random)
  }

  async step(at: number): Promise<void> {
    const step = pick(this.#random, this.#steps)
    const place = pick(this.#random, this.#places)
    this.last = step.name
    this.#taken[step.name] = (this.#taken[step.name] ?? 0) + 1
    const { oracle } = place.machine
    this.#world.onGiven((repo, tag) => {
      oracle.givenByHub.set(repo, (oracle.givenByHub.get(repo) ?? new Set()).add(tag))
    })
    const touched = (await step.call(this, place)) ?? []
    for (const artifact of touched) {
      await place.doors.all(artifact)
      // what the mirror was asked for comes in meanwhile, under a name that the next look could take for another's
      await this.#settle(place)
    }
    // what only reads leaves nothing
    const readers: readonly unknown[] = [this.askWebseed, this.askSwarm, this.askOci]
    if (!readers.includes(step)) await this.#settle(place)
    if (at % SWEEP_EVERY === 0) for (const each of this.#places) await this.#sweep(each)
  }

  async #sweep(place: Place): Promise<void> {
    const { oracle } = place.machine
    this.#world.onGiven((repo, tag) => {
      oracle.givenByHub.set(repo, (oracle.givenByHub.get(repo) ?? new Set()).add(tag))
    })
    const all = [...oracle.artifacts.values()]
    for (let i = 0; i < Math.min(SWEEP_AT_MOST, all.length); i++) {
      await place.doors.all(pick(this.#random, all))
      await this.#settle(place)
    }
  }

  /** What strangers caused is over, and the model knows what it left: an import by the hub's road. */
  async #settle({ machine }: Place): Promise<void> {
    await machine.quiet()
    await machine.inventory()
    const { names, artifacts } = machine.oracle
    for (const manifest of [...names.values()].flatMap((quants) => [...quants.values()])) {
      const known = artifacts.get(manifest)!
      if (known.arrivals.length > 0) continue
      known.arrivals.push('unknown')
      known.isOfHub = true
    }
  }

  outcome(steps: number): Outcome {
    const given: Record<string, number> = {}
    for (const { doors } of this.#places)
      for (const [door, count] of Object.entries(doors.given)) given[door] = (given[door] ?? 0) + count
    return { steps, taken: this.#taken, given }
  }

  async close(): Promise<void> {
    for (const { machine } of this.#places) await machine.close()
    await this.#world.close()
  }

  #artifact({ machine }: Place): Known | undefined {
    const all = [...machine.oracle.artifacts.values()]
    return all.length === 0 ? undefined : pick(this.#random, all)
  }

  /** One that has a name now, and that name. */
  #named({ machine: { oracle } }: Place): { readonly ref: string; readonly artifact: Known } | undefined {
    const all = [...oracle.names].flatMap(([name, quants]) =>
      [...quants].map(([quant, manifest]) => ({ ref: `${name}:${quant}`, artifact: oracle.artifacts.get(manifest)! }))
    )
    return all.length === 0 ? undefined : pick(this.#random, all)
  }

  /** Notes how the artifacts of a job arrived. */
  async #arrived(
    { machine }: Place,
    job: Job | undefined,
    arrival: (artifact: Known) => Arrival,
    isPrivate: boolean
  ): Promise<readonly Known[]> {
    if (job?.state !== 'done') return []
    const touched: Known[] = []
    for (const manifest of job.result?.manifests ?? []) {
      const known = (await machine.learn(manifest))!
      known.isLeaving = machine.oracle.inSwarm(known) !== 'no'
      known.arrivals.push(arrival(known))
      if (isPrivate) known.decision = 'private'
      if (job.kind !== 'import-bt') known.isOfHub = job.kind === 'import-hf'
      touched.push(known)
    }
    await machine.quiet()
    await machine.inventory()
    return touched
  }

  #mark(): { readonly private?: boolean } {
    return [{}, {}, { private: true }, { private: false }][this.#random(4)]!
  }

  #isPrivate({ machine }: Place, mark: { readonly private?: boolean }, isOwn: boolean): boolean {
    return mark.private ?? (isOwn && machine.habits.seedLocal === false)
  }

  async importOwn(place: Place): Promise<readonly Known[]> {
    const { client } = place.machine
    const mark = this.#mark()
    const folder = this.#world.folderOf(pick(this.#random, this.#world.own))
    const job = await place.machine.done(
      client.importLocal({ paths: [folder], as: pick(this.#random, NAMES), ...mark })
    )
    return this.#arrived(place, job, () => 'own', this.#isPrivate(place, mark, true))
  }

  async importHub(place: Place): Promise<readonly Known[]> {
    const repo = pick(this.#random, this.#world.repos)
    const commit = pick(this.#random, repo.commits)
    const mark = this.#mark()
    const asked = {
      repo: pick(this.#random, repo.names),
      ...(this.#random(2) === 0 && { revision: commit.sha }),
      ...(this.#random(3) === 0 && { as: pick(this.#random, NAMES) }),
      ...mark
    }
    const job = await place.machine.done(place.machine.client.importHf(asked))
    return this.#arrived(place, job, (known) => this.#fromHub(place, repo, known), mark.private === true)
  }

  /** Bytes that a listing only names are here by other ways; by those others may have them, or not. */
  #fromHub({ machine: { oracle } }: Place, repo: Repo, known: Known): Arrival {
    if (repo.access !== 'public') return 'credential'
    const given = repo.commits.find(({ sha }) => sha === known.repo?.commit)?.given
    const named = [...known.tags].filter((tag) => given?.has(tag) !== true)
    if (named.length === 0) return 'public'
    const others = [...oracle.artifacts.values()].filter((each) => each !== known && oracle.inSwarm(each) !== 'no')
    return named.every((tag) => others.some(({ tags }) => tags.has(tag))) ? 'either' : 'unknown'
  }

  async adopt(place: Place): Promise<readonly Known[]> {
    const repo = pick(this.#random, this.#world.repos)
    const root = this.#world.cacheOf(repo, this.#random(repo.commits.length))
    const isPrivate = this.#random(4) === 0
    const { code, stdout } = await place.machine.svc(
      'adopt',
      root,
      '--yes',
      '--json',
      ...(isPrivate ? ['--private'] : [])
    )
    if (code !== 0) return []
    const { models } = JSON.parse(stdout) as { models: readonly { readonly refs: readonly string[] }[] }
    const touched: Known[] = []
    await place.machine.inventory()
    for (const ref of models.flatMap(({ refs }) => refs)) {
      const { manifestDigest } = await place.machine.client.resolve(`svc:///${ref}`)
      const known = (await place.machine.learn(manifestDigest))!
      known.isLeaving = place.machine.oracle.inSwarm(known) !== 'no'
      known.isOfHub = true
      known.arrivals.push(repo.access === 'public' ? 'either' : 'unasked')
      if (isPrivate) known.decision = 'private'
      else if (place.machine.habits.seedLocal === false && known.decision !== 'private') known.decision = 'either'
      touched.push(known)
    }
    return touched
  }

  #fromParcel({ standing }: Parcel): Arrival {
    return standing === 'given' ? 'public' : standing === 'held' ? 'unknown' : 'either'
  }

  async importLayout(place: Place): Promise<readonly Known[]> {
    if (this.#world.layouts.length === 0) return []
    const layout = pick(this.#random, this.#world.layouts)
    const mark = this.#mark()
    const asked = { path: layout.path, as: pick(this.#random, NAMES), ...mark }
    const job = await place.machine.done(place.machine.client.importOci(asked))
    const arrival = this.#fromParcel(layout)
    return this.#arrived(place, job, () => (arrival === 'public' ? 'own' : arrival), this.#isPrivate(place, mark, true))
  }

  async importImage(place: Place): Promise<readonly Known[]> {
    if (this.#world.images.length === 0) return []
    const image = pick(this.#random, this.#world.images)
    const mark = this.#mark()
    const asked = { image: image.image, as: pick(this.#random, NAMES), ...mark }
    const job = await place.machine.done(place.machine.client.importOci(asked))
    const isClosed = this.#world.closed.has(image.repository)
    return this.#arrived(place, job, () => (isClosed ? 'credential' : this.#fromParcel(image)), mark.private === true)
  }

  async importPublication(place: Place): Promise<readonly Known[]> {
    if (this.#world.publications.length === 0) return []
    const { manifest, infohash, part, standing } = pick(this.#random, this.#world.publications)
    const asked = part === 'keyed' && this.#random(2) === 0 ? 'front' : part
    const mark = this.#mark()
    const body = {
      infohash,
      manifestDigest: manifest,
      webseeds: [`${this.#world.bucket.url}${asked}/`],
      peers: [],
      ...(this.#random(2) === 0 && { as: pick(this.#random, NAMES) }),
      ...mark
    }
    const { machine } = place
    const wasWhole = await machine.holds(manifest)
    const job = await machine.done(machine.client.importBt(body))
    const arrival = part === 'keyed' ? (wasWhole ? 'either' : 'credential') : standing === 'given' ? 'public' : 'either'
    return this.#arrived(place, job, ({ arrivals }) => keyedAfter(arrivals, arrival), mark.private === true)
  }

  /** What the other machine gives by its webseed, if it does. */
  async importFromOther(place: Place): Promise<readonly Known[]> {
    const other = this.#places.find((each) => each !== place)!
    const found = this.#artifact(other)
    if (found === undefined) return []
    const mark = this.#mark()
    const body = {
      infohash: `btmh:1220${found.torrent.infohash}`,
      manifestDigest: found.manifest,
      webseeds: [`${other.machine.doors.webseed}/`],
      peers: [],
      as: pick(this.#random, NAMES),
      ...mark
    }
    const wasHere = await place.machine.holds(found.manifest)
    const job = await place.machine.done(place.machine.client.importBt(body))
    if (!wasHere && job?.state === 'done' && other.machine.oracle.inSwarm(found) === 'no')
      throw new LeakError('webseed', `the other machine imported ${found.manifest}`)
    return this.#arrived(place, job, () => (wasHere ? 'either' : 'public'), mark.private === true)
  }

  async setPrivate(place: Place): Promise<readonly Known[]> {
    const found = this.#named(place)
    if (found === undefined) return []
    const isPrivate = this.#random(2) === 0
    await place.machine.client.setPrivate({ ref: `svc:///${found.ref}`, private: isPrivate })
    found.artifact.decision = isPrivate ? 'private' : 'shared'
    return [found.artifact]
  }

  async remove(place: Place): Promise<readonly Known[]> {
    const found = this.#named(place)
    if (found === undefined) return []
    const [ns, name, quant] = found.ref.split(/[/:]/) as [string, string, string]
    await place.machine.client.removeModel({ ns, name, quant })
    await place.machine.inventory()
    return [found.artifact]
  }

  /** What nothing needs is gone, with what was known of it. */
  async collect({ machine }: Place): Promise<void> {
    await machine.done(machine.client.gc({ graceSeconds: 0 }))
    await machine.inventory()
    const needed = new Set([...machine.oracle.names.values()].flatMap((quants) => [...quants.values()]))
    for (const artifact of machine.oracle.artifacts.values()) {
      if (needed.has(artifact.manifest) || (await machine.holds(artifact.manifest))) continue
      artifact.arrivals = []
      // what comes back by its pin says of no repository that it is from there
      artifact.isOfHub = false
      if (artifact.decision !== 'none') artifact.decision = 'either'
    }
  }

  /** A start asks the hub for what nobody could say before. */
  async restart({ machine }: Place): Promise<void> {
    for (const { repo, arrivals } of machine.oracle.artifacts.values())
      if (repo !== undefined && this.#world.repos[repo.number]!.access === 'public' && arrivals.includes('unasked'))
        arrivals.push('either')
    await machine.restart()
  }

  /** Writes an artifact somewhere without saying that it may be withheld; what comes of that must be what others may have. */
  async #passOn(
    place: Place,
    words: (ref: string, place: string) => readonly string[]
  ): Promise<{ readonly artifact: Known; readonly folder: string; readonly standing: Parcel['standing'] } | undefined> {
    const found = this.#named(place)
    if (found === undefined) return undefined
    const { artifact, ref } = found
    const may = place.machine.oracle.mayHave(artifact)
    const folder = join(this.#world.folder, `passed-${this.#exports++}`)
    const ran = await place.machine.svc(...words(ref, folder))
    const door = words(ref, folder)[0]!
    if (ran.code === 0 && may === 'no') throw new LeakError(door, `${ref} (${factsOf(artifact)}) was passed on`)
    if (ran.code !== 0 && place.machine.oracle.mustBeGiven(artifact))
      throw new Error(`${ref} was not passed on: ${ran.stderr}`)
    if (existing(folder).some((path) => [...tagsIn(readFileSync(path))].some(() => may === 'no')))
      throw new LeakError(door, `${ref} was written`)
    if (ran.code === 0) {
      place.doors.given[door] = (place.doors.given[door] ?? 0) + 1
      return { artifact, folder, standing: may === 'yes' ? 'given' : 'either' }
    }
    const again = await place.machine.svc(...words(ref, folder), '--withheld')
    if (again.code !== 0) return undefined
    return { artifact, folder, standing: may === 'no' ? 'held' : 'either' }
  }

  async exportLayout(place: Place): Promise<void> {
    const passed = await this.#passOn(place, (ref, folder) => ['export', 'oci', ref, folder])
    if (passed === undefined) return
    const { artifact, folder: path, standing } = passed
    this.#world.layouts.push({ ...parcelOf(artifact, standing), path })
  }

  async push(place: Place): Promise<void> {
    const repository = `repo-${this.#exports % 3}/m${this.#exports}`
    const image = `${this.#world.registry.address}/${repository}:latest`
    if (this.#random(2) === 0) this.#setClosed(repository, true)
    const passed = await this.#passOn(place, (ref) => ['push', ref, image])
    if (passed !== undefined)
      this.#world.images.push({ ...parcelOf(passed.artifact, passed.standing), image, repository })
  }

  async publish(place: Place): Promise<void> {
    const part = pick(this.#random, ['open', 'keyed'] as const)
    const folder = join(this.#world.folder, 'bucket', part)
    const passed = await this.#passOn(place, (ref) => ['publish', ref, folder])
    if (passed !== undefined) this.#world.publications.push({ ...parcelOf(passed.artifact, passed.standing), part })
  }

  #setClosed(repository: string, isClosed: boolean): void {
    this.#world.registry.setClosed(repository, isClosed)
    if (isClosed) this.#world.closed.add(repository)
    else this.#world.closed.delete(repository)
  }

  async closeRegistry(): Promise<void> {
    if (this.#world.images.length === 0) return
    const { repository } = pick(this.#random, this.#world.images)
    this.#setClosed(repository, !this.#world.closed.has(repository))
  }

  async changeAccess(): Promise<void> {
    const repo = pick(this.#random, this.#world.repos)
    this.#world.setAccess(repo, pick(this.#random, ['public', 'public', 'gated', 'private'] as const))
  }

  async renameRepo(): Promise<void> {
    const repo = pick(this.#random, this.#world.repos)
    if (repo.names.length < 4) this.#world.rename(repo, this.#random)
  }

  async commit(): Promise<void> {
    const repo = pick(this.#random, this.#world.repos)
    if (repo.commits.length < 6) this.#world.commit(repo, this.#world.newModel().files, [])
  }

  /** Somebody lists the digest of bytes that they never had. */
  async nameForeignBytes(): Promise<void> {
    const repo = pick(this.#random, this.#world.repos)
    if (repo.commits.length >= 6) return
    const foreign = pick(this.#random, [
      ...this.#world.own,
      ...this.#world.repos.flatMap(({ commits }) => commits)
    ]).files.filter(({ name }) => name.endsWith('.gguf'))
    this.#world.commit(
      repo,
      this.#world.newModel().files.filter(({ name }) => !name.endsWith('.gguf')),
      foreign
    )
  }

  async askHubMirror({ doors }: Place): Promise<void> {
    const repo = pick(this.#random, this.#world.repos)
    const commit = pick(this.#random, repo.commits)
    const revision = this.#random(3) === 0 ? 'main' : commit.sha
    const file = this.#random(3) === 0 ? undefined : pick(this.#random, commit.files).name
    await doors.hubMirror(repo, pick(this.#random, repo.names), revision, file)
  }

  async askWebseed(place: Place): Promise<void> {
    const artifact = this.#artifact(place)
    if (artifact !== undefined) await place.doors.webseed(artifact)
  }

  async askSwarm(place: Place): Promise<void> {
    const artifact = this.#artifact(place)
    if (artifact !== undefined) await place.doors.swarm(artifact)
  }

  /** Any digest under any name. */
  async askOci(place: Place): Promise<void> {
    const [artifact, other] = [this.#artifact(place), this.#artifact(place)]
    if (artifact === undefined || other === undefined || other.refs.size === 0) return
    const [name, quant] = pick(this.#random, [...other.refs]).split(':') as [string, string]
    await place.doors.ociTags(name)
    await place.doors.ociManifest(name, quant)
    await place.doors.ociBlob(
      name,
      pick(this.#random, [artifact.manifest, ...artifact.files.map((file) => file.digest)])
    )
  }
}

const keyedAfter = (before: readonly Arrival[], arrival: Arrival): Arrival =>
  arrival === 'credential' && before.length > 0 ? 'either' : arrival

const parcelOf = ({ manifest, torrent }: Known, standing: Parcel['standing']): Parcel => ({
  manifest,
  infohash: `btmh:1220${torrent.infohash}`,
  standing
})

function existing(folder: string): string[] {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return []
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
