import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { dirname, join } from 'node:path'
import { Writable } from 'node:stream'
import { type Client, ClientError, createClient, type Job } from '@svc/client'
import { type FileConfig, mergeConfig } from '@svc/daemon'
import { type InspectedDaemon, startInspected } from '../../../daemon/src/app/daemon.ts'
import { run } from '../../src/run.ts'
import { type Known, Oracle } from './oracle.ts'
import { tagsIn } from './tagged.ts'
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

class Captured extends Writable {
  text = ''
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

  private constructor(world: World, folder: string, habits: Habits) {
    this.#world = world
    this.folder = folder
    this.habits = habits
    this.oracle = new Oracle(habits.seedRestricted)
  }

  static async start(world: World, folder: string, habits: Habits): Promise<Machine> {
    const machine = new Machine(world, folder, habits)
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
    const config = mergeConfig(file, { root: join(this.folder, 'root') }, { SVC_HF_TOKEN: TOKEN })
    this.#running = await startInspected({ config, socketPath, hashThreads: 1 })
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

  async restart(): Promise<void> {
    await this.close()
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
    const terminal = { stdout, stderr, cwd: this.folder, env }
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

  async #look(ref: string): Promise<Known> {
    const { manifestDigest, files } = await this.client.open(ref)
    const manifest = await this.#blob(manifestDigest)
    const document = JSON.parse(manifest.toString()) as {
      readonly files: readonly { readonly name: string; readonly digest: string }[]
      readonly annotations?: Readonly<Record<string, string>>
    }
    const tags = new Set<string>()
    for (const { digest } of document.files)
      if (files.some((file) => file.digest === digest))
        for (const tag of tagsIn(await this.#blob(digest))) tags.add(tag)
    const { name, infohash } = await this.client.share(ref)
    const { 'svc.hf.repo': repo, 'svc.hf.revision': commit } = document.annotations ?? {}
    const number = repo === undefined ? undefined : this.#world.repoNamed(repo)?.number
    return {
      manifest: manifestDigest,
      tags,
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
