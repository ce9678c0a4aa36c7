// One file, as every step reads and changes the same world.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ClientError, type Job, type ShareResult } from '@svc/client'
import { putOllama } from '../tool-caches.ts'
import { Doors, factsOf, LeakError } from './doors.ts'
import { type Habits, Machine } from './machine.ts'
import type { Arrival, Beside, Known } from './oracle.ts'
import { Strangers, type StrangersArtifact } from './strangers.ts'
import { pick, type Random, seededRandom, type TaggedFile, tagsIn, type Victim } from './tagged.ts'
import { givenIn, type Parcel, type Repo, World } from './world.ts'

/** A history of random steps on two machines, whose doors are tried after each. */
export interface HistoryOptions {
  readonly seed: number
  readonly steps: number
  /** The folder for everything; one in memory makes it fast. */
  readonly base: string
  /** After how many steps every door is asked for dozens of artifacts and digests; default 100. A sweep takes as long as 200 steps. */
  readonly sweepEvery?: number
}

export interface Outcome {
  readonly steps: number
  /** How often each kind of step was taken. */
  readonly taken: Readonly<Record<string, number>>
  /** How often each door gave something that may be had: a test in which nothing is given shows nothing. */
  readonly given: Readonly<Record<string, number>>
  /** How often each door was asked for what nobody may have, and refused it. */
  readonly refused: Readonly<Record<string, number>>
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
/** Withheld digests that every door is asked for: after a step, and in a sweep. */
const DIGESTS_A_STEP = 1
const DIGESTS_A_SWEEP = 40

/** Runs a history to its end, or to the first leak. @throws whatever else goes wrong */
export async function runHistory({ seed, steps, base, sweepEvery = SWEEP_EVERY }: HistoryOptions): Promise<Outcome> {
  const folder = mkdtempSync(join(base, 'provenance-'))
  const history = await History.start(folder, seededRandom(seed))
  const before = process.env.DOCKER_CONFIG
  process.env.DOCKER_CONFIG = join(folder, 'docker')
  try {
    for (let at = 1; at <= steps; at++) {
      try {
        await history.step(at)
        if (at % sweepEvery === 0) await history.sweep()
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
  readonly #strangers: Strangers
  #exports = 0

  private constructor(world: World, places: readonly Place[], random: Random, strangers: Strangers) {
    this.#world = world
    this.#places = places
    this.#random = random
    this.#strangers = strangers
    const of = (count: number, step: (place: Place) => Promise<readonly Known[] | void>) => Array(count).fill(step)
    this.#steps = [
      ...of(8, this.importOwn),
      ...of(10, this.importHub),
      ...of(4, this.adopt),
      ...of(1, this.adoptOffline),
      ...of(2, this.adoptOllama),
      ...of(4, this.atOnce),
      ...of(2, this.importCatalog),
      ...of(3, this.importByOci),
      ...of(2, this.fetchCompanions),
      ...of(4, this.importLayout),
      ...of(4, this.importImage),
      ...of(4, this.importPublication),
      ...of(3, this.importFromOther),
      ...of(6, this.setPrivate),
      ...of(3, this.remove),
      ...of(1, this.collect),
      ...of(1, this.restart),
      ...of(1, this.moveByBackup),
      ...of(3, this.exportLayout),
      ...of(3, this.push),
      ...of(3, this.publish),
      ...of(6, this.changeAccess),
      ...of(2, this.renameRepo),
      ...of(3, this.commit),
      ...of(3, this.nameForeignBytes),
      ...of(8, this.importStrangersPin),
      ...of(1, this.ensureStrangersPin),
      ...of(4, this.importStrangersImage),
      ...of(3, this.importStrangersLayout),
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
    const strangers = new Strangers(world, random)
    for (const name of ['a', 'b']) {
      mkdirSync(join(folder, name))
      const { backup, pins } = strangers.backup(filesOf(world))
      const isRestored = random(2) === 0
      const machine = await Machine.start(world, join(folder, name), habits, isRestored ? backup : undefined)
      for (const pin of isRestored ? pins : [])
        machine.expect(pin, pin.named.length === 0 ? 'either' : 'named').awaits = 'me/one'
      places.push({ machine, doors: new Doors(machine, world) })
    }
    return new History(world, places, random, strangers)
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
    oracle.reconsider()
    if (process.env.SVC_PROVENANCE_TRACE !== undefined) this.#trace(at, place, touched)
    for (const artifact of touched) {
      await place.doors.all(artifact)
      // what the mirror was asked for comes in meanwhile, under a name that the next look could take for another's
      await this.#settle(place)
    }
    // what only reads leaves nothing
    const readers: readonly unknown[] = [this.askWebseed, this.askSwarm, this.askOci]
    if (!readers.includes(step)) await this.#settle(place)
    if (step !== this.askHubMirror && !readers.includes(step)) await this.#askForHidden(place, DIGESTS_A_STEP)
  }

  /** All doors for many artifacts, besides those that a step was about. */
  async sweep(): Promise<void> {
    for (const place of this.#places) await this.#sweep(place)
  }

  /** Every door, for digests that nobody may know of. */
  async #askForHidden(place: Place, most: number): Promise<void> {
    const { oracle } = place.machine
    for (let i = 0; i < most; i++) {
      const hidden = oracle.hidden()
      if (hidden.length === 0) return
      const hex = pick(this.#random, hidden)
      const owners = oracle.ownersOf(hex)
      await place.doors.digest(hex, owners.length === 0 ? undefined : pick(this.#random, owners))
      await this.#settle(place)
    }
  }

  /** For people who look for the reason of a leak: what each step was about. */
  #trace(at: number, place: Place, touched: readonly Known[]): void {
    const about = touched.map((each) => `${each.manifest} ${[...each.refs].join(' ')} (${factsOf(each)})`)
    const where = this.#places.indexOf(place) === 0 ? 'a' : 'b'
    process.stderr.write(`${at} ${where} ${this.last}: ${about.join(', ')}\n`)
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
    await this.#askForHidden(place, DIGESTS_A_SWEEP)
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
      const commits = known.repo === undefined ? [] : this.#world.repos[known.repo.number]!.commits
      const files = commits.find(({ sha }) => sha === known.repo?.commit)?.files ?? []
      machine.oracle.laidBeside(known, { ...companionsOf(files), tags: new Set() })
    }
    machine.oracle.reconsider()
  }

  outcome(steps: number): Outcome {
    const summed = (counts: (doors: Doors) => Record<string, number>): Record<string, number> => {
      const sums: Record<string, number> = {}
      for (const { doors } of this.#places)
        for (const [door, count] of Object.entries(counts(doors))) sums[door] = (sums[door] ?? 0) + count
      return sums
    }
    const [given, refused] = [summed((doors) => doors.given), summed((doors) => doors.refused)]
    return { steps, taken: this.#taken, given, refused }
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
    isPrivate: boolean,
    beside?: Beside
  ): Promise<readonly Known[]> {
    if (job?.state !== 'done') return []
    const touched: Known[] = []
    for (const manifest of job.result?.manifests ?? []) {
      const known = (await machine.learn(manifest))!
      known.isLeaving = machine.oracle.inSwarm(known) !== 'no'
      known.arrivals.push(arrival(known))
      if (beside !== undefined) machine.oracle.laidBeside(known, beside)
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
    const model = pick(this.#random, this.#world.own)
    const folder = this.#world.folderOf(model)
    const job = await place.machine.done(
      client.importLocal({ paths: [folder], as: pick(this.#random, NAMES), ...mark })
    )
    for (const { oracle } of this.#places.map(({ machine }) => machine)) oracle.never.add(model.notes.sha256)
    const { tags, beside } = companionsOf(model.files)
    const all = { tags, beside: new Set([...beside, model.notes.sha256]) }
    return this.#arrived(place, job, () => 'own', this.#isPrivate(place, mark, true), all)
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
    // without a revision it is the latest
    const { files } = asked.revision === undefined ? repo.commits.at(-1)! : commit
    const arrival = (known: Known): Arrival => this.#fromHub(place, repo, known)
    return this.#arrived(place, job, arrival, mark.private === true, companionsOf(givenIn(repo, files)))
  }

  /** Bytes that a listing only names are here by other ways; by those others may have them, or not. */
  #fromHub({ machine: { oracle } }: Place, repo: Repo, known: Known): Arrival {
    if (repo.access !== 'public') return 'credential'
    const given = repo.commits.find(({ sha }) => sha === known.repo?.commit)?.given
    const named = [...known.tags].filter((tag) => given?.has(tag) !== true)
    if (named.length === 0) return 'public'
    return oracle.areGiven(tagged(named), known) ? 'either' : 'named'
  }

  adopt(place: Place): Promise<readonly Known[]> {
    return this.#adopt(place, true)
  }

  /** Nobody can be asked who may have it: it is withheld, and asked about at a later start. */
  async adoptOffline(place: Place): Promise<readonly Known[]> {
    this.#world.hub.setFaults(() => ({ kind: 'refuse' }))
    try {
      return await this.#adopt(place, false)
    } finally {
      this.#world.hub.setFaults(undefined)
    }
  }

  /** Ollama downloaded it, and nobody can be asked who may have it. */
  async adoptOllama(place: Place): Promise<readonly Known[]> {
    const { files } = pick(this.#random, this.#world.own)
    const root = join(this.#world.folder, `ollama-${files[0]!.tag}`)
    putOllama(root, `own-${files[0]!.tag}`, 'latest', files[0]!.bytes)
    const isPrivate = this.#random(4) === 0
    const { code, stdout } = await place.machine.svc('adopt', root, '--yes', '--json', ...sharing(place, isPrivate))
    if (code !== 0) return []
    const { models } = JSON.parse(stdout) as { models: readonly { readonly refs: readonly string[] }[] }
    await place.machine.inventory()
    const touched: Known[] = []
    for (const ref of models.flatMap(({ refs }) => refs)) {
      const { manifestDigest } = await place.machine.client.resolve(`svc:///${ref}`)
      const known = (await place.machine.learn(manifestDigest))!
      known.isLeaving = place.machine.oracle.inSwarm(known) !== 'no'
      known.arrivals.push('unknown')
      known.isOfHub = false
      if (isPrivate || place.machine.habits.seedLocal === false) known.decision = 'private'
      touched.push(known)
    }
    return touched
  }

  /**
   * The owner decides, and does something else, while strangers ask: they get nothing of what is withheld before and after that,
   * and nothing of what was decided once the answer is there.
   */
  async atOnce(place: Place): Promise<readonly Known[]> {
    const found = this.#named(place)
    if (found === undefined) return []
    const { machine, doors } = place
    const { artifact, ref } = found
    const said = this.#random(2) === 0 ? 'private' : 'shared'
    const other = pick(this.#random, [this.importOwn, this.importHub, this.importFromOther, this.importPublication])
    const asked = [artifact, this.#artifact(place)!].filter((each) => machine.oracle.inSwarm(each) === 'no')
    const before = artifact.decision
    // both are true until the answer is there
    if (said === 'shared' || !asked.includes(artifact)) artifact.decision = 'either'
    const [decided, imported, ...answers] = await Promise.allSettled([
      machine.client.setPrivate({ ref: `svc:///${ref}`, private: said === 'private' }),
      other.call(this, place),
      ...asked.map(async (each) => {
        await doors.webseed(each)
        await doors.swarm(each)
        await doors.names(each)
      })
    ])
    if (imported.status === 'rejected') throw imported.reason
    const alsoSaid = (artifact.decision as Known['decision']) === 'private'
    if (decided.status === 'rejected') artifact.decision = before === said ? before : 'either'
    else artifact.decision = said === 'shared' && alsoSaid ? 'either' : said
    const touched = [artifact, ...(imported.value ?? [])]
    for (const [i, answer] of answers.entries()) {
      if (answer.status === 'fulfilled') continue
      const isStill =
        machine.oracle.inSwarm(asked[i]!) === 'no' && !touched.slice(1).some((each) => isRelated(each, asked[i]!))
      if (isStill || !(answer.reason instanceof LeakError)) throw answer.reason
    }
    return touched
  }

  async #adopt(place: Place, isOnline: boolean): Promise<readonly Known[]> {
    const repo = pick(this.#random, this.#world.repos)
    const at = this.#random(repo.commits.length)
    const root = this.#world.cacheOf(repo, at)
    const isPrivate = this.#random(4) === 0
    const { code, stdout } = await place.machine.svc('adopt', root, '--yes', '--json', ...sharing(place, isPrivate))
    if (code !== 0) return []
    const { models } = JSON.parse(stdout) as { models: readonly { readonly refs: readonly string[] }[] }
    const touched: Known[] = []
    await place.machine.inventory()
    for (const ref of models.flatMap(({ refs }) => refs)) {
      const { manifestDigest } = await place.machine.client.resolve(`svc:///${ref}`)
      const known = (await place.machine.learn(manifestDigest))!
      known.isLeaving = place.machine.oracle.inSwarm(known) !== 'no'
      known.isOfHub = true
      place.machine.oracle.laidBeside(known, companionsOf(givenIn(repo, repo.commits[at]!.files)))
      known.arrivals.push(isOnline && repo.access === 'public' ? 'either' : 'unasked')
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
    const isPrivate = this.#isPrivate(place, mark, true)
    return this.#arrived(place, job, () => (arrival === 'public' ? 'own' : arrival), isPrivate, layout)
  }

  async importImage(place: Place): Promise<readonly Known[]> {
    if (this.#world.images.length === 0) return []
    const image = pick(this.#random, this.#world.images)
    const mark = this.#mark()
    const asked = { image: image.image, as: pick(this.#random, NAMES), ...mark }
    const job = await place.machine.done(place.machine.client.importOci(asked))
    const isClosed = this.#world.closed.has(image.repository)
    const arrival = isClosed ? 'credential' : this.#fromParcel(image)
    return this.#arrived(place, job, () => arrival, mark.private === true, image)
  }

  async importPublication(place: Place): Promise<readonly Known[]> {
    if (this.#world.publications.length === 0) return []
    const publication = pick(this.#random, this.#world.publications)
    const { manifest, infohash, part, standing } = publication
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
    const after = ({ arrivals }: Known): Arrival => keyedAfter(arrivals, arrival)
    return this.#arrived(place, job, after, mark.private === true, publication)
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
      peers: this.#random(2) === 0 ? [] : [`127.0.0.1:${other.machine.doors.peerPort}`],
      as: pick(this.#random, NAMES),
      ...mark
    }
    const wasHere = await place.machine.holds(found.manifest)
    const companions = await this.#companionsOf(other, found)
    const job = await place.machine.done(
      place.machine.client.importBt({ ...body, ...(companions !== undefined && { companions }) })
    )
    if (!wasHere && job?.state === 'done' && other.machine.oracle.inSwarm(found) === 'no')
      throw new LeakError('webseed', `the other machine imported ${found.manifest}`)
    return this.#arrived(place, job, () => (wasHere ? 'either' : 'public'), mark.private === true, found)
  }

  /** The second pin of a share, where it is given. */
  async #companionsOf({ machine }: Place, found: Known): Promise<ShareResult['companions']> {
    const [ref = `some/name@${found.manifest}`] = found.refs
    try {
      const { manifestDigest, companions } = await machine.client.share(`svc:///${ref}`)
      if (manifestDigest !== found.manifest || companions === undefined) return undefined
      found.pins.add(companions.infohash.slice('btmh:1220'.length))
      return companions
    } catch (error) {
      if (error instanceof ClientError) return undefined
      throw error
    }
  }

  /** What the other machine gives by its OCI mirror, if it does. */
  async importByOci(place: Place): Promise<readonly Known[]> {
    const other = this.#places.find((each) => each !== place)!
    const found = this.#named(other)
    if (found === undefined) return []
    const mark = this.#mark()
    const image = `${other.machine.doors.oci.slice('http://'.length)}/${found.ref}`
    const job = await place.machine.done(
      place.machine.client.importOci({ image, as: pick(this.#random, NAMES), ...mark })
    )
    if (job?.state === 'done' && other.machine.oracle.mayHave(found.artifact) === 'no')
      throw new LeakError('OCI mirror', `the other machine pulled ${image}`)
    return this.#arrived(place, job, () => 'public', mark.private === true, found.artifact)
  }

  /** What lies beside a model at the hub comes alone. */
  async fetchCompanions(place: Place): Promise<readonly Known[]> {
    const found = this.#named(place)
    if (found === undefined) return []
    const { artifact, ref } = found
    const job = await place.machine.done(place.machine.client.companions({ ref: `svc:///${ref}` }))
    if (job?.state !== 'done' || artifact.repo === undefined) return []
    const repo = this.#world.repos[artifact.repo.number]!
    const files = repo.commits.find(({ sha }) => sha === artifact.repo!.commit)?.files ?? []
    artifact.isLeaving = place.machine.oracle.inSwarm(artifact) !== 'no'
    if (repo.access !== 'public') artifact.arrivals.push('credential')
    place.machine.oracle.laidBeside(artifact, companionsOf(files))
    return [artifact]
  }

  /** Weights alone, by BitTorrent v1; what their hashes are, the hub says. */
  async importCatalog(place: Place): Promise<readonly Known[]> {
    const repo = pick(this.#random, this.#world.repos)
    const commit = pick(this.#random, repo.commits)
    const weights = commit.files.find(({ name }) => name.endsWith('.gguf'))!
    const mark = this.#mark()
    const name = pick(this.#random, repo.names)
    const { infohash, peer } = this.#world.list(name, commit.sha, weights)
    const asked = { repo: name, peers: [peer], as: pick(this.#random, NAMES), ...mark }
    const job = await place.machine.done(place.machine.client.importCatalog(asked))
    const arrival =
      repo.access !== 'public'
        ? 'credential'
        : commit.given.has(weights.tag)
          ? ('public' as const)
          : ('either' as const)
    const touched = await this.#arrived(place, job, () => arrival, mark.private === true)
    for (const known of touched) known.v1 = infohash
    return touched
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
    await this.#forgetUnneeded(machine)
  }

  /** The owner's own backup, restored elsewhere: it has what is needed. */
  async moveByBackup({ machine }: Place): Promise<void> {
    await machine.quiet()
    this.#isAskedAgain(machine)
    await machine.moveByBackup()
    await this.#forgetUnneeded(machine)
  }

  async #forgetUnneeded(machine: Machine): Promise<void> {
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
    this.#isAskedAgain(machine)
    await machine.restart()
  }

  #isAskedAgain(machine: Machine): void {
    for (const { repo, arrivals } of machine.oracle.artifacts.values())
      if (repo !== undefined && this.#world.repos[repo.number]!.access === 'public' && arrivals.includes('unasked'))
        arrivals.push('either')
  }

  /**
   * Writes an artifact somewhere without saying that it may be withheld; what comes of that must be what others may have.
   * @param target what is there
   */
  async #passOn(
    place: Place,
    target: () => Content,
    words: (ref: string) => readonly string[]
  ): Promise<{ readonly artifact: Known; readonly standing: Parcel['standing'] } | undefined> {
    const found = this.#named(place)
    if (found === undefined) return undefined
    const { artifact, ref } = found
    const may = place.machine.oracle.mayHave(artifact)
    const before = target()
    const door = words(ref)[0]!
    const holds = (tags: ReadonlySet<string>): void => {
      for (const [name, read] of target())
        for (const tag of before.has(name) ? [] : tagsIn(read()))
          if (!tags.has(tag)) throw new LeakError(door, `${ref} (${factsOf(artifact)}): ${name} has bytes of ${tag}`)
    }
    const ran = await place.machine.svc(...words(ref))
    if (ran.code === 0 && may === 'no') throw new LeakError(door, `${ref} (${factsOf(artifact)}) was passed on`)
    if (ran.code !== 0 && place.machine.oracle.mustBeGiven(artifact))
      throw new Error(`${ref} was not passed on: ${ran.stderr}`)
    holds(may === 'no' ? new Set() : artifact.tags)
    if (ran.code === 0) {
      place.doors.given[door] = (place.doors.given[door] ?? 0) + 1
      return { artifact, standing: may === 'yes' ? 'given' : 'either' }
    }
    const again = await place.machine.svc(...words(ref), '--withheld')
    // what the owner keeps for the owner's own eyes is not in that either
    holds(artifact.tags)
    if (again.code !== 0) return undefined
    return { artifact, standing: may === 'no' ? 'held' : 'either' }
  }

  async exportLayout(place: Place): Promise<void> {
    const path = join(this.#world.folder, `passed-${this.#exports++}`)
    const passed = await this.#passOn(
      place,
      () => contentOf(path),
      (ref) => ['export', 'oci', ref, path]
    )
    if (passed !== undefined) this.#world.layouts.push({ ...parcelOf(passed), path })
  }

  async push(place: Place): Promise<void> {
    const { registry, images } = this.#world
    const repository = `repo-${this.#exports % 3}/m${this.#exports++}`
    const image = `${registry.address}/${repository}:latest`
    if (this.#random(2) === 0) this.#setClosed(repository, true)
    const passed = await this.#passOn(
      place,
      () => new Map(registry.contentOf(repository).map((bytes, at) => [`${repository} ${at}`, () => bytes])),
      (ref) => ['push', ref, image]
    )
    if (passed !== undefined) images.push({ ...parcelOf(passed), image, repository })
  }

  async publish(place: Place): Promise<void> {
    const part = pick(this.#random, ['open', 'keyed'] as const)
    const folder = join(this.#world.folder, 'bucket', part)
    const passed = await this.#passOn(
      place,
      () => contentOf(folder),
      (ref) => ['publish', ref, folder]
    )
    if (passed !== undefined) this.#world.publications.push({ ...parcelOf(passed), part })
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
    const of = pick(this.#random, [...this.#world.own, ...this.#world.repos.flatMap(({ commits }) => commits)]).files
    const { files } = this.#world.newModel()
    if (this.#random(2) === 0) return this.#world.commit(repo, files, this.#strangers.listing(of))
    const isWeights = ({ name }: TaggedFile): boolean => name.endsWith('.gguf')
    this.#world.commit(
      repo,
      files.filter((file) => !isWeights(file)),
      of.filter(isWeights)
    )
  }

  /** Whatever may be here, and a document of what is. */
  async #victims(place: Place): Promise<readonly Victim[]> {
    const { machine } = place
    const files = filesOf(this.#world)
    const here = new Set([...machine.oracle.artifacts.values()].flatMap(({ tags }) => [...tags]))
    const isHere = ({ tag, sha256 }: Victim): boolean => here.has(tag!) || machine.oracle.never.has(sha256)
    // what is not here takes a fetch that nobody answers
    const chosen = this.#random(16) === 0 ? files : files.filter(isHere)
    const named = this.#named(place)
    if (named === undefined) return chosen.length === 0 ? files : chosen
    const { manifest } = named.artifact
    return [...chosen, { bytes: await machine.readBlob(manifest), sha256: manifest.slice('sha256:'.length) }]
  }

  /** A stranger's pin, whose manifest calls bytes that are here whatever it likes, of whichever repository. */
  async importStrangersPin(place: Place): Promise<readonly Known[]> {
    const { machine } = place
    const pin = this.#strangers.pin(await this.#victims(place))
    const mark = this.#mark()
    const { manifestDigest, infohash, companions, beside, named, webseed } = pin
    const known = machine.expect(pin, named.length === 0 ? 'either' : 'named')
    if (this.#random(4) > 0) known.awaits = pick(this.#random, NAMES)
    await machine.done(
      machine.client.importBt({
        infohash,
        manifestDigest,
        webseeds: [webseed],
        peers: [],
        ...(known.awaits !== undefined && { as: known.awaits }),
        ...(companions !== undefined && { companions }),
        ...mark
      })
    )
    if (mark.private === true) known.decision = 'private'
    machine.oracle.laidBeside(known, besideOf(beside))
    if (companions !== undefined) known.pins.add(companions.infohash.slice('btmh:1220'.length))
    await machine.quiet()
    await machine.inventory()
    return [known]
  }

  /** The owner wants what a stranger's pin had not brought. */
  async ensureStrangersPin({ machine }: Place): Promise<readonly Known[]> {
    const pins = [...machine.oracle.artifacts.values()].filter(({ named }) => named !== undefined)
    if (pins.length === 0) return []
    const known = pick(this.#random, pins)
    if (!(await machine.holds(known.manifest))) return []
    await machine.done(machine.client.ensure({ ref: `svc:///some/name@${known.manifest}` }))
    await machine.quiet()
    await machine.inventory()
    return [known]
  }

  async importStrangersImage(place: Place): Promise<readonly Known[]> {
    const { image, ...artifact } = await this.#strangers.image(await this.#victims(place))
    return this.#importStrangers(place, { image }, artifact, false)
  }

  async importStrangersLayout(place: Place): Promise<readonly Known[]> {
    const { path, ...artifact } = this.#strangers.layout(await this.#victims(place))
    return this.#importStrangers(place, { path }, artifact, true)
  }

  async #importStrangers(
    place: Place,
    from: { readonly image: string } | { readonly path: string },
    { claimed, given }: StrangersArtifact,
    isOwn: boolean
  ): Promise<readonly Known[]> {
    const mark = this.#mark()
    const job = await place.machine.done(
      place.machine.client.importOci({ ...from, as: pick(this.#random, NAMES), ...mark })
    )
    const arrival = (known: Known): Arrival => {
      const isIn = ({ tag, sha256 }: Victim): boolean =>
        tag === undefined ? known.files.some(({ digest }) => digest === `sha256:${sha256}`) : known.tags.has(tag)
      const named = claimed.filter((victim) => !given.includes(victim) && isIn(victim))
      return place.machine.oracle.areGiven(named, known) ? 'either' : 'named'
    }
    return this.#arrived(place, job, arrival, this.#isPrivate(place, mark, isOwn), besideOf(given))
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
    await place.doors.s3(name, quant, [pick(this.#random, artifact.files).name])
  }
}

/** What is done to one changes what others may have by the names of the other. */
/** The options of `svc adopt` where nobody is asked whether to share. */
function sharing({ machine }: Place, isPrivate: boolean): string[] {
  if (isPrivate) return ['--private']
  return machine.habits.seedLocal === undefined ? ['--share'] : []
}

const isRelated = (a: Known, b: Known): boolean =>
  (a.repo !== undefined && a.repo.number === b.repo?.number) ||
  [...a.tags].some((tag) => b.tags.has(tag)) ||
  [...a.refs].some((ref) => [...b.refs].some((each) => each.split(':')[0] === ref.split(':')[0]))

/** Everything that may be here one day. */
const filesOf = ({ own, repos }: World): readonly TaggedFile[] => [
  ...own.flatMap((model) => [...model.files, model.notes]),
  ...repos.flatMap(({ commits }) => commits.flatMap((commit) => commit.files))
]

/** What a stranger gave may lie beside its artifact. */
const besideOf = (given: readonly Victim[]): Beside => ({
  tags: new Set(given.flatMap(({ tag }) => (tag === undefined ? [] : [tag]))),
  beside: new Set(given.map(({ sha256 }) => sha256))
})

/** Bytes by their tags alone. */
const tagged = (tags: readonly string[]) => tags.map((tag) => ({ tag, sha256: '' }))

const keyedAfter = (before: readonly Arrival[], arrival: Arrival): Arrival =>
  arrival === 'credential' && before.length > 0 ? 'either' : arrival

const parcelOf = ({
  artifact: { manifest, torrent, tags, beside },
  standing
}: Pick<Parcel, 'standing'> & { readonly artifact: Known }): Parcel => ({
  manifest,
  infohash: `btmh:1220${torrent.infohash}`,
  tags: new Set(tags),
  beside: new Set(beside),
  standing
})

function companionsOf(files: readonly TaggedFile[]): Beside {
  // some are in manifests, in a form of their own, and have their own digests again where models are laid out
  const all = files.filter(({ name }) => !name.endsWith('.gguf'))
  return { tags: new Set(all.map(({ tag }) => tag)), beside: new Set(all.map(({ sha256 }) => sha256)) }
}

/** Files by their names. */
type Content = ReadonlyMap<string, () => Buffer>

function contentOf(folder: string): Content {
  if (statSync(folder, { throwIfNoEntry: false }) === undefined) return new Map()
  return new Map(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path, () => readFileSync(path)])
  )
}
