import { mkdirSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { dirname, join } from 'node:path'
import { type Client, createClient, type Job } from '@svc/client'
import { type FileConfig, mergeConfig, type RunningDaemon, startDaemon } from '@svc/daemon'
import { type Ran, svc } from '../support.ts'

export interface GateHabits {
  readonly file: FileConfig
  readonly hubToken?: string
}

/** What a daemon gives of one artifact, as seen from each side. */
export interface Seen {
  /** In `GET /v1/status`. */
  readonly status: 'seeding' | 'held back' | 'both' | 'neither'
  /** In `GET /v1/share`. */
  readonly announced: boolean
  /** Status codes of strangers' requests. */
  readonly webseed: number
  readonly hubMirror: number
  readonly ociMirror: number
  readonly s3Mirror: number
  /** In `GET /v1/why`: `given`, or why not, for all doors. */
  readonly why: readonly string[]
  readonly by: string | undefined
}

/** A daemon in this process whose doors for strangers are all open on loopback. */
export class Gate {
  readonly folder: string
  client!: Client
  readonly #habits: GateHabits
  #running!: RunningDaemon
  #doors = { webseed: '', hub: '', oci: '', s3: '' }

  private constructor(folder: string, habits: GateHabits) {
    this.folder = folder
    this.#habits = habits
  }

  static async start(folder: string, habits: GateHabits): Promise<Gate> {
    mkdirSync(folder, { recursive: true })
    const gate = new Gate(folder, habits)
    await gate.#start()
    return gate
  }

  async #start(): Promise<void> {
    const { file, hubToken } = this.#habits
    const doors: FileConfig = {
      ...file,
      swarm: { dht: false, peer_addr: '127.0.0.1:0', webseed_addr: '127.0.0.1:0', fill_timeout: 5, ...file.swarm },
      mirror: { hub_addr: '127.0.0.1:0', oci_addr: '127.0.0.1:0', s3_addr: '127.0.0.1:0', ...file.mirror }
    }
    const socketPath = join(this.folder, 's.sock')
    const env = hubToken === undefined ? {} : { SVC_HF_TOKEN: hubToken }
    this.#running = await startDaemon({
      config: mergeConfig(doors, { root: join(this.folder, 'root') }, env),
      socketPath
    })
    this.client = createClient({ socketPath })
    const facts = JSON.parse(readFileSync(join(dirname(socketPath), 'runtime.json'), 'utf8'))
    const { swarm } = await this.client.status()
    this.#doors = {
      webseed: `http://${swarm.webseedAddress!}`,
      hub: `http://${facts.hubMirrorAddress}`,
      oci: `http://${facts.ociMirrorAddress}`,
      s3: `http://${facts.s3MirrorAddress}`
    }
  }

  async restart(): Promise<void> {
    await this.close()
    await this.#start()
  }

  async close(): Promise<void> {
    this.client.close()
    await this.#running.close({ quick: true })
  }

  async svc(...args: string[]): Promise<Ran> {
    const ran = await svc(args, { socketPath: join(this.folder, 's.sock'), cwd: this.folder })
    if (ran.code !== 0) throw new Error(`svc ${args.join(' ')}: ${ran.stderr}`)
    return ran
  }

  /** The last state of a job, which must have succeeded. */
  async done(asked: Promise<Job>): Promise<Job> {
    const job = await this.client.waitJob(await asked, { intervalMs: 1 })
    if (job.state !== 'done') throw new Error(`${job.kind} ${job.ref}: ${JSON.stringify(job.error)}`)
    return job
  }

  /** The status code of a stranger's request to a mirror. */
  ask(door: 'hub' | 'oci' | 's3' | 'webseed', path: string): Promise<number> {
    return new Promise((resolve, reject) => {
      request(this.#doors[door] + path, { agent: false }, (response) => {
        response.resume().on('error', reject)
        response.on('end', () => resolve(response.statusCode!))
      })
        .on('error', reject)
        .end()
    })
  }

  /** @param hubPath of its weights at the hub's mirror @param file its weights in the torrent */
  async look(ref: string, file: string, hubPath: string): Promise<Seen> {
    const [name, quant] = ref.split(':')
    const why = await this.client.why(`svc:///${ref}`)
    const share = await this.client.share(`svc:///${ref}`)
    const { swarm } = await this.client.status()
    const has = (list: readonly { readonly manifestDigest?: string }[]): boolean =>
      list.some(({ manifestDigest }) => manifestDigest === why.manifestDigest)
    const [isSeeding, isHeldBack] = [has(swarm.torrents), has(swarm.heldBack)]
    return {
      status: isSeeding ? (isHeldBack ? 'both' : 'seeding') : isHeldBack ? 'held back' : 'neither',
      announced: share.announced,
      webseed: await this.ask('webseed', `/${share.name}/${file}`),
      hubMirror: await this.ask('hub', hubPath),
      ociMirror: await this.ask('oci', `/v2/${name}/manifests/${quant}`),
      s3Mirror: await this.ask('s3', `/models/${name}/${quant}/${file}`),
      why: [...new Set(why.doors.map(({ given, withheld }) => (given ? 'given' : withheld!.fact)))],
      by: why.by
    }
  }
}
