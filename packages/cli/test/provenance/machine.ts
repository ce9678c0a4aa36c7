import { readFileSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { dirname, join } from 'node:path'
import { Writable } from 'node:stream'
import { type Client, ClientError, createClient, type Job } from '@svc/client'
import { type FileConfig, mergeConfig } from '@svc/daemon'
import { Output } from '@svc/internal-terminal'
import { type Backup, openBackup, openTarget } from '@svc/publish'
import { type InspectedDaemon, startInspected } from '../../../daemon/src/app/daemon.ts'
import { createLog } from '../../../daemon/src/log.ts'
import { restoreStore } from '../../../library/src/copying/restore-store.ts'
import { run } from '../../src/run.ts'
import { type Arrival, type Known, Oracle } from './oracle.ts'
import type { StrangersPin } from './strangers.ts'
import { digestsIn, tagsIn } from './tagged.ts'
import { ALLOWED, TOKEN, type World } from './world.ts'

/** How a machine is configured; what else is the same for all. */
export interface Habits {
  readonly onDemand: boolean
  readonly seedRestricted: boolean
  readonly seedLocal: boolean | undefined
}

/** What a command line left. */
export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** For people who look for the reason of a leak: what each step was about, and what the daemons say. */
const isTraced = process.env.SVC_PROVENANCE_TRACE !== undefined

class Captured extends Writable {
  text = ''
  readonly output = new Output(this)
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString('utf8')
    done()
  }
}

/** A daemon with all its doors open on loopback, and what the model knows of it. */
export class Machine {
  readonly folder: string
  readonly habits: Habits
  readonly oracle: Oracle
  /** For requests of strangers. */
  agent = new Agent({ keepAlive: true, maxSockets: 4 })
  doors = { webseed: '', hub: '', oci: '', s3: '', peerPort: 0 }
  client!: Client
  readonly #world: World
  #running!: InspectedDaemon
  #roots = 0

  private constructor(world: World, folder: string, habits: Habits) {
    this.#world = world
    this.folder = folder
    this.habits = habits
    this.oracle = new Oracle(habits.seedRestricted)
  }

  /** @param backup what its store is restored from; default: it is new */
  static async start(world: World, folder: string, habits: Habits, backup?: Backup): Promise<Machine> {
    const machine = new Machine(world, folder, habits)
    if (backup !== undefined) await machine.#restore(backup)
    await machine.#start()
    return machine
  }

  async #start(): Promise<void> {
    const { onDemand, seedRestricted, seedLocal } = this.habits
    const file: FileConfig = {
      hub: { endpoint: this.#world.hub.endpoint },
      catalog: { endpoint: this.#world.catalog.endpoint },
      swarm: {
        dht: false,
        peer_addr: '127.0.0.1:0',
        webseed_addr: '127.0.0.1:0',
        seed_on_import: true,
        fill_timeout: 2,
        seed_restricted: seedRestricted,
        ...(seedLocal !== undefined && { seed_local: seedLocal })
      },
      mirror: {
        hub_addr: '127.0.0.1:0',
        oci_addr: '127.0.0.1:0',
        s3_addr: '127.0.0.1:0',
        ...(onDemand && { on_demand: true, on_demand_allow: [ALLOWED] })
      },
      webseed: { [`${this.#world.bucket.url}keyed/`]: { credentials_file: join(this.#world.folder, 'keys') } }
    }
    const socketPath = join(this.folder, 's.sock')
    const config = mergeConfig(file, { root: this.#root }, { SVC_HF_TOKEN: TOKEN })
    this.#running = await startInspected({
      config,
      socketPath,
      hashThreads: 1,
      ...(isTraced && { log: createLog('warn') })
    })
    this.client = createClient({ socketPath })
    const { swarm } = await this.client.status()
    const facts = JSON.parse(readFileSync(join(dirname(socketPath), 'runtime.json'), 'utf8'))
    this.doors = {
      webseed: `http://${swarm.webseedAddress!}`,
      hub: `http://${facts.hubMirrorAddress}`,
      oci: `http://${facts.ociMirrorAddress}`,
      s3: `http://${facts.s3MirrorAddress}`,
      peerPort: Number(swarm.peerAddress!.split(':').at(-1))
    }
  }

  get #root(): string {
    return join(this.folder, `root-${this.#roots}`)
  }

  async #restore(backup: Backup): Promise<void> {
    await restoreStore({
      backup,
      from: 'a backup',
      root: this.#root,
      incomplete: false,
      signal: new AbortController().signal,
      onProgress: () => undefined
    })
  }

  /** Goes on in another folder, with what a backup has of the store. */
  async moveByBackup(): Promise<void> {
    const to = join(this.folder, `backup-${this.#roots}`)
    const { code, stderr } = await this.svc('backup', to)
    if (code !== 0) throw new Error(`no backup: ${stderr}`)
    await this.close()
    const before = this.#root
    this.#roots++
    await this.#restore(await openBackup(await openTarget({ kind: 'folder', path: to }, { readOnly: true })))
    for (const folder of [to, before]) rmSync(folder, { recursive: true, force: true })
    await this.#open()
  }

  async restart(): Promise<void> {
    await this.close()
    await this.#open()
  }

  async #open(): Promise<void> {
    this.agent = new Agent({ keepAlive: true, maxSockets: 4 })
    await this.#start()
  }

  async close(): Promise<void> {
    this.agent.destroy()
    this.client.close()
    await this.#running.close({ quick: true })
  }

  /** Runs `svc` against this machine. */
  async svc(...args: string[]): Promise<Ran> {
    const [stdout, stderr] = [new Captured(), new Captured()]
    const env = { SVC_SOCKET: join(this.folder, 's.sock'), HOME: this.folder }
    const terminal = { stdout: stdout.output, stderr: stderr.output, cwd: this.folder, env }
    const code = await run(args, '1.2.3', terminal, new AbortController().signal)
    return { code, stdout: stdout.text, stderr: stderr.text }
  }

  /** The last state of a job; undefined where the request itself was refused. */
  async done(asked: Promise<Job>): Promise<Job | undefined> {
    try {
      return await this.client.waitJob(await asked, { intervalMs: 1 })
    } catch (error) {
      if (error instanceof ClientError) return undefined
      throw error
    }
  }

  /** No job runs any more, and what followed the last ones is done. */
  async quiet(): Promise<void> {
    const { jobs } = this.#running.context
    while (jobs.openCount > 0)
      for (const { id, state } of await this.client.jobs()) if (!['done', 'failed'].includes(state)) await jobs.over(id)
  }

  /** What is here under names now; what was not known yet is learnt, and told. */
  async inventory(): Promise<readonly Known[]> {
    const { oracle } = this
    const fresh: Known[] = []
    const names = new Map<string, ReadonlyMap<string, string>>()
    for (const { ns, name, members } of (await this.client.models()).namespaces) {
      const quants = new Map<string, string>()
      for (const { quant, manifest } of members) {
        const isNew = !oracle.artifacts.has(manifest)
        const known = await this.learn(manifest)
        if (isNew) fresh.push(known)
        quants.set(quant, manifest)
        known.refs.add(`${ns}/${name}:${quant}`)
      }
      names.set(`${ns}/${name}`, quants)
    }
    oracle.names = names
    return fresh
  }

  /** Whether an artifact's manifest is here, under a name or without. */
  async holds(manifest: string): Promise<boolean> {
    try {
      await this.client.headBlob(manifest)
      return true
    } catch (error) {
      if (error instanceof ClientError) return false
      throw error
    }
  }

  /** Learns an artifact by its digest, where it is here. */
  async learn(manifest: string): Promise<Known> {
    const known = this.oracle.artifacts.get(manifest) ?? (await this.#look(`svc:///some/name@${manifest}`))
    // another step that runs at once may have learnt it meanwhile
    const first = this.oracle.artifacts.get(manifest)
    if (first !== undefined) return first
    this.oracle.learn(known)
    return known
  }

  /** Knows of what a stranger's pin would bring, whether it comes or not. */
  expect(
    { manifestDigest, infohash, torrent, files, claimed, named, annotations }: Omit<StrangersPin, 'webseed'>,
    may: Arrival
  ): Known {
    const { 'svc.hf.repo': repo, 'svc.hf.revision': commit } = annotations
    const number = repo === undefined ? undefined : this.#world.repoNamed(repo)?.number
    const claim = repo === undefined ? undefined : { name: repo, commit: commit! }
    const known: Known = {
      manifest: manifestDigest,
      tags: new Set(claimed.flatMap(({ tag }) => (tag === undefined ? [] : [tag]))),
      beside: new Set(),
      pins: new Set(),
      files,
      torrent: { name: torrent.name, infohash: infohash.slice('btmh:1220'.length) },
      ...(claim !== undefined && (number === undefined ? { claims: claim } : { repo: { number, ...claim } })),
      isOfHub: false,
      mentions: new Set(claimed.flatMap(({ bytes }) => [...digestsIn(bytes)])),
      named,
      refs: new Set(),
      arrivals: [may],
      decision: 'none',
      isLeaving: false
    }
    this.oracle.learn(known)
    return known
  }

  /** The bytes of a blob. @throws ClientError */
  readBlob(digest: string): Promise<Buffer> {
    return this.#blob(digest)
  }

  async #look(ref: string): Promise<Known> {
    const { manifestDigest, files } = await this.client.open(ref)
    const manifest = await this.#blob(manifestDigest)
    const document = JSON.parse(manifest.toString()) as {
      readonly files: readonly { readonly name: string; readonly digest: string }[]
      readonly annotations?: Readonly<Record<string, string>>
    }
    const [tags, mentions] = [new Set<string>(), new Set<string>()]
    for (const { digest } of document.files.filter((file) => files.some((each) => each.digest === file.digest))) {
      const bytes = await this.#blob(digest)
      for (const tag of tagsIn(bytes)) tags.add(tag)
      for (const hex of digestsIn(bytes)) mentions.add(hex)
    }
    const { name, infohash } = await this.client.share(ref)
    const { 'svc.hf.repo': repo, 'svc.hf.revision': commit } = document.annotations ?? {}
    const number = repo === undefined ? undefined : this.#world.repoNamed(repo)?.number
    return {
      manifest: manifestDigest,
      tags,
      mentions,
      beside: new Set(),
      pins: new Set(),
      files: document.files,
      torrent: { name, infohash: infohash.slice('btmh:1220'.length) },
      ...(number !== undefined && { repo: { number, name: repo!, commit: commit! } }),
      isOfHub: false,
      refs: new Set(),
      arrivals: [],
      decision: 'none',
      isLeaving: false
    }
  }

  async #blob(digest: string): Promise<Buffer> {
    return Buffer.concat(await (await this.client.readBlob(digest)).body.toArray())
  }
}
