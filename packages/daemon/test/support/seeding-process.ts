import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../swarm/nodes.ts'
import { temporaryFolder } from './daemon.ts'
import { gguf, writeFiles } from './models.ts'
import { type SpawnedDaemon, spawnDaemon } from './process.ts'

const HOST = '127.0.0.1'

/** A daemon process with all its doors open on loopback, and one model that it seeds. */
export interface SeedingProcess {
  readonly daemon: SpawnedDaemon
  readonly folder: string
  /** The model's reference. */
  readonly ref: string
  readonly peerPort: number
  readonly webseedPort: number
  readonly hubPort: number
  readonly ociPort: number
  readonly metricsPort: number
  /** 0 without an S3 mirror, which `mirror` may turn on. */
  readonly s3Port: number
  /** 0 without a DHT. */
  readonly dhtPort: number
  /** The path of the weights at the webseed port. */
  readonly webseedPath: string
  /** Of the weights. */
  readonly digest: string
  /** The root of the weights' BitTorrent v2 tree. */
  readonly root: Buffer
  /** 48 bytes, without the peer id that ends it. */
  readonly handshake: Buffer
  /** Resident memory, MiB. */
  readonly rssMiB: () => number
}

export interface SeedingOptions {
  readonly sizeBytes?: number
  readonly trackers?: readonly string[]
  /** `host:port` of the one node to enter the DHT by; without it there is none. */
  readonly dhtBootstrap?: string
  /** More lines of the configuration's `[mirror]`, and of a `[hub]`. */
  readonly mirror?: readonly string[]
  readonly hub?: readonly string[]
  /** Lines of a `[[trust]]`. */
  readonly trust?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Started with the test, and ended with it. */
export async function startSeedingProcess(options: SeedingOptions = {}): Promise<SeedingProcess> {
  const { sizeBytes = 1_100_000, trackers = [], dhtBootstrap, mirror = [], hub = [], trust = [], env = {} } = options
  const folder = temporaryFolder()
  const config = join(folder, 'config.toml')
  const lines = [
    '[swarm]',
    `peer_addr = "${HOST}:0"`,
    `webseed_addr = "${HOST}:0"`,
    'seed_on_import = true',
    `trackers = ${JSON.stringify(trackers)}`,
    dhtBootstrap === undefined ? 'dht = false' : `dht_bootstrap = ["${dhtBootstrap}"]`,
    '[mirror]',
    `hub_addr = "${HOST}:0"`,
    `oci_addr = "${HOST}:0"`,
    ...mirror,
    '[hub]',
    ...hub,
    '[metrics]',
    `addr = "${HOST}:0"`,
    ...(trust.length > 0 ? ['[[trust]]', ...trust] : [])
  ]
  writeFileSync(config, `${lines.join('\n')}\n`)
  const daemon = await spawnDaemon({
    folder,
    env,
    args: ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', config]
  })
  const job = await daemon.import([writeFiles(join(folder, 'm0'), { 'm-q8_0.gguf': gguf(sizeBytes) })], 'me/m0')
  const manifest = job.result!.manifests[0]!
  const ref = 'svc:///me/m0:q8_0'
  const share = await eventually(async () => {
    const { body } = await daemon.get(`/v1/share?ref=${encodeURIComponent(ref)}`)
    return body.announced ? (body as { infohash: string; name: string }) : undefined
  })
  const { swarm } = (await daemon.get('/v1/status')).body
  const { files } = JSON.parse((await daemon.get(`/v1/blob/${manifest}`)).bytes.toString()) as {
    files: { kind: string; digest: string; bt: { merkleRoot: string } }[]
  }
  const weights = files.find(({ kind }) => kind === 'weights.gguf')!
  const { hubMirrorAddress, ociMirrorAddress, s3MirrorAddress, metricsAddress } = JSON.parse(
    readFileSync(join(folder, 'runtime.json'), 'utf8')
  )
  const infohash = Buffer.from(share.infohash.slice('btmh:1220'.length).slice(0, 40), 'hex')
  const reserved = Buffer.from([0, 0, 0, 0, 0, 0x10, 0, 0x14])
  return {
    daemon,
    folder,
    ref,
    peerPort: portOf(swarm.peerAddress),
    webseedPort: portOf(swarm.webseedAddress),
    hubPort: portOf(hubMirrorAddress),
    ociPort: portOf(ociMirrorAddress),
    metricsPort: portOf(metricsAddress),
    s3Port: s3MirrorAddress === undefined ? 0 : portOf(s3MirrorAddress),
    dhtPort: swarm.dhtPort ?? 0,
    webseedPath: `/${share.name}/m-q8_0.gguf`,
    digest: weights.digest,
    root: Buffer.from(weights.bt.merkleRoot.slice('sha256:'.length), 'hex'),
    handshake: Buffer.concat([Buffer.from('\x13BitTorrent protocol', 'latin1'), reserved, infohash]),
    rssMiB: () => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${daemon.child.pid}/status`, 'utf8'))![1]) / 1024
  }
}

const portOf = (address: string): number => Number(address.split(':')[1])
