import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseTorrent } from '@svc/metainfo'
import { type BenchDaemon, DaemonLauncher } from '../harness/daemon.ts'
import { Companion } from './companion.ts'
import { type Machine, Network, on } from './network.ts'

export interface FleetOptions {
  readonly root: string
  /** Folder of the model to roll out. */
  readonly model: string
  readonly receivers: number
  readonly megabits: number
  readonly zones?: number
  /** Whether the daemons list each other as `trusted`; default true. */
  readonly trusted?: boolean
  /** Make a web server the only origin: the publisher stops before the first download. */
  readonly bucket?: boolean
  /** Lines that end the configuration of the receivers. */
  readonly receiverConfig?: readonly string[]
}

interface Share {
  readonly announced: boolean
  readonly magnet: string
  readonly infohash: string
  readonly manifestDigest: string
  readonly name: string
}

interface Status {
  readonly swarm: {
    readonly webseedAddress: string
    readonly torrents: readonly { readonly uploadedBytes: number }[]
  }
}

const POLL_MS = 100

/** A publisher (or a bucket), a tracker and daemons, each in its own network namespace. */
export class Fleet {
  readonly receivers: BenchDaemon[] = []
  /** Of the receivers. */
  readonly machines: Machine[] = []
  readonly #launcher = new DaemonLauncher({ source: false })
  readonly #companions: Companion[] = []
  readonly network: Network
  readonly #options: FleetOptions
  #seedMachine!: Machine
  #offExit = (): void => undefined
  readonly tracker: string
  seed: BenchDaemon | undefined
  share!: Share
  #bucket: Companion | undefined
  #bucketUrl: string | undefined

  private constructor(options: FleetOptions, network: Network) {
    this.#options = options
    this.network = network
    this.tracker = `http://${network.hub.address}:6969/announce`
  }

  static async start(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options, Network.create(options.zones))
    const abandon = (): void => fleet.abandon()
    process.once('exit', abandon)
    fleet.#offExit = () => void process.off('exit', abandon)
    try {
      await fleet.#start()
    } catch (error) {
      await fleet.stop()
      throw error
    }
    return fleet
  }

  async #start(): Promise<void> {
    const { model, receivers, megabits, zones = 1, bucket } = this.#options
    this.#companions.push(await Companion.start(this.network.hub, 'tracker'))
    const seedMachine = this.network.machine(0, bucket ? 0 : megabits)
    this.#seedMachine = seedMachine
    const seed = await this.#daemon('seed', seedMachine, 0)
    this.seed = seed
    await seed.api.job('/v1/import/local', { paths: [model], as: 'bench/model' })
    const ref = encodeURIComponent('svc:///bench/model:bf16')
    for (;;) {
      this.share = (await seed.api.get(`/v1/share?ref=${ref}`)) as Share
      if (this.share.announced) break
      await delay(50)
    }
    if (bucket) await this.#publish()
    // sequentially, because each start takes a second of CPU
    for (let index = 1; index <= receivers; index += 1) {
      const zone = Math.floor(((index - 1) * zones) / receivers)
      const machine = this.network.machine(index, megabits, zone)
      this.machines.push(machine)
      this.receivers.push(await this.#daemon(`node-${index}`, machine, zone))
    }
  }

  #daemon(name: string, machine: Machine, zone: number): Promise<BenchDaemon> {
    const { root, zones = 1, trusted = true } = this.#options
    const folder = join(root, name)
    mkdirSync(folder, { mode: 0o700 })
    const config = [
      '[swarm]',
      'dht = false',
      `trackers = ["${this.tracker}"]`,
      'peer_addr = "0.0.0.0:6881"',
      // loopback, so that peers do not learn of it
      'webseed_addr = "127.0.0.1:0"',
      'seed_on_import = true',
      ...(trusted ? ['trusted = ["10.99.0.0/16"]'] : []),
      ...(trusted && zones > 1 ? [`zone = "zone-${zone}"`] : []),
      ...(name === 'seed' ? [] : (this.#options.receiverConfig ?? []))
    ]
    return this.#launcher.start({ root: folder, config: `${config.join('\n')}\n`, prefix: on(machine) })
  }

  /** Copies what the publisher serves as a webseed to static files. */
  async #layout(): Promise<string> {
    const folder = join(this.#options.root, 'static')
    const { swarm } = (await this.seed!.api.get('/v1/status')) as Status
    const hex = this.share.infohash.slice('btmh:1220'.length)
    const put = (path: string): Uint8Array => {
      const target = join(folder, path)
      mkdirSync(dirname(target), { recursive: true })
      const url = `http://${swarm.webseedAddress}/${path.split('/').map(encodeURIComponent).join('/')}`
      const [program = '', ...args] = [...on(this.#seedMachine), 'curl', '-sf', url]
      const bytes = execFileSync(program, args, { maxBuffer: 1 << 30 })
      writeFileSync(target, bytes)
      return bytes
    }
    const { info } = parseTorrent(put(`bt/${hex}.torrent`))
    put(`bt/piece-layers/${hex}`)
    for (const { path } of info.files) put(`${info.name}/${path}`)
    return folder
  }

  /** Starts a web server with the model and stops the publisher. */
  async #publish(): Promise<void> {
    const folder = await this.#layout()
    const machine = this.network.machine(200, 0)
    this.#bucket = await Companion.start(machine, 'bucket', folder)
    this.#companions.push(this.#bucket)
    this.#bucketUrl = `http://${machine.address}:8080/`
    await this.stopSeed()
  }

  async stopSeed(): Promise<void> {
    await this.seed?.stop()
    this.seed = undefined
  }

  /** Adds a peer that serves corrupt data, on a link of the same rate. */
  async poison(): Promise<void> {
    const folder = await this.#layout()
    const machine = this.network.machine(201, this.#options.megabits)
    const torrent = join(folder, 'bt', `${this.share.infohash.slice('btmh:1220'.length)}.torrent`)
    this.#companions.push(await Companion.start(machine, 'poisoner', torrent, folder, this.tracker))
  }

  /** Downloads the model on one receiver, under the name `as` if there is one. @returns seconds from the request until it is stored durably */
  async fetch(index: number, as?: string): Promise<number> {
    const { api } = this.receivers[index]!
    const { magnet, manifestDigest } = this.share
    const webseeds = this.#bucketUrl === undefined ? {} : { webseeds: [this.#bucketUrl] }
    const named = this.#bucketUrl === undefined ? { magnet } : { infohash: this.share.infohash }
    const begun = performance.now()
    const { id } = (await api.post('/v1/import/bt', {
      ...named,
      ...webseeds,
      manifestDigest,
      manifestFromPeers: true,
      ...(as !== undefined && { as })
    })) as { id: string }
    for (;;) {
      const job = (await api.get(`/v1/jobs/${id}`)) as { state: string; error?: { code: string; message: string } }
      if (job.state === 'done') return (performance.now() - begun) / 1000
      if (job.state !== 'waiting' && job.state !== 'fetching')
        throw new Error(`node ${index + 1}: ${job.error?.code}: ${job.error?.message}`)
      await delay(POLL_MS)
    }
  }

  /** Piece data uploaded by the origin. */
  async originBytes(): Promise<number> {
    if (this.#bucket !== undefined) {
      this.#bucket.send({})
      return (await this.#bucket.next(({ bytes }) => bytes !== undefined)).bytes as number
    }
    const { swarm } = (await this.seed!.api.get('/v1/status')) as Status
    return swarm.torrents.reduce((sum, { uploadedBytes }) => sum + uploadedBytes, 0)
  }

  /** Synchronous clean-up, for `process.on('exit')`. */
  abandon(): void {
    this.#launcher.killAll()
  }

  async stop(): Promise<void> {
    await this.#launcher.stopAll()
    await Promise.all(this.#companions.map((companion) => companion.stop()))
    this.network.remove()
    this.#offExit()
    for (const { root } of [...this.receivers, ...(this.seed ? [this.seed] : [])])
      rmSync(root, { recursive: true, force: true })
  }
}
