import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Client, ClientError, createClient } from '@svc/client'
import type { ImportBtBody, Job, ShareResult } from '@svc/client/protocol'
import type { Sha256Digest } from '@svc/ref'
import { seededBytes } from '@svc/testkit/models'
import { until } from '@svc/testkit/until'
import { expect, onTestFinished, vi } from 'vitest'
import type { InspectedOptions } from '../../src/app/daemon.ts'
import { type InspectedDaemon, startInspected } from '../../src/app/daemon.ts'
import { openSwarm } from '../../src/app/open-swarm.ts'
import type { FileConfig } from '../../src/config/keys.ts'
import { type CleanUp, temporaryFolder } from '../support/daemon.ts'
import { type Files, writeFiles } from '../support/models.ts'

// Several daemons per test, each with threads of its own: on a busy machine their start alone takes a while
vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

export const MIB = 1 << 20

/** A GGUF by name and head; what follows is noise. */
export const weights = (sizeBytes: number, seed = 1): Buffer =>
  Buffer.concat([Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1'), seededBytes(sizeBytes - 24, seed)])

/** Several pieces, small files, and names that URLs must encode. */
export const MODEL: Files = {
  'model-q8_0.gguf': weights(5 * MIB + 12_345),
  'config.json': '{"model_type":"llama"}\n',
  'tokenizer.json': '{"version":"1.0"}',
  'chat_template.jinja': '{{ messages }}',
  'modeling_tiny.py': 'pass\n',
  'größe a+b%20c/adapter_model.safetensors': seededBytes(50_000, 7),
  'größe a+b%20c/adapter_config.json': '{}'
}

export interface NodeOptions {
  readonly folder?: string
  readonly swarm?: FileConfig['swarm']
  readonly mirror?: FileConfig['mirror']
  readonly trust?: FileConfig['trust']
  readonly hub?: FileConfig['hub']
  readonly network?: FileConfig['network']
  readonly more?: Partial<InspectedOptions>
}

/** A daemon of this process with the swarm client on 127.0.0.1, without DHT, hub and catalog; imports are seeded at once. */
export class Node {
  readonly folder: string
  readonly running: InspectedDaemon
  readonly client: Client

  private constructor(folder: string, running: InspectedDaemon) {
    this.folder = folder
    this.running = running
    this.client = createClient({ socketPath: running.socketPath })
  }

  static async start(
    { folder, swarm, mirror, trust, hub, network, more }: NodeOptions = {},
    cleanUp: CleanUp = onTestFinished
  ): Promise<Node> {
    const own = folder ?? temporaryFolder(cleanUp)
    const running = await startInspected({
      hashThreads: 1,
      root: join(own, 'root'),
      socketPath: join(own, 's.sock'),
      fileConfig: {
        swarm: { dht: false, peer_addr: '127.0.0.1:0', fill_timeout: 60, seed_on_import: true, ...swarm },
        ...(mirror && { mirror }),
        ...(trust && { trust }),
        ...(hub && { hub }),
        ...(network && { network })
      },
      networks: { swarm: (context) => openSwarm(context) },
      ...more
    })
    const node = new Node(own, running)
    cleanUp(() => node.stop())
    return node
  }

  get root(): string {
    return join(this.folder, 'root')
  }

  async addresses(): Promise<{ readonly peer: string; readonly webseed: string }> {
    const { swarm } = await this.client.status()
    return { peer: swarm.peerAddress!, webseed: `http://${swarm.webseedAddress}/` }
  }

  /** Stops the daemon; `Node.start({folder})` starts it again. Idempotent. */
  async stop(): Promise<void> {
    this.client.close()
    await this.running.close({ quick: true })
  }

  async importFiles(files: Files, as = 'me/model'): Promise<Sha256Digest> {
    const folder = writeFiles(join(this.folder, `files-${as.replace('/', '-')}`), files)
    const job = await this.client.waitJob(await this.client.importLocal({ paths: [folder], as }), { intervalMs: 10 })
    expect(job.error).toBeUndefined()
    return job.result!.manifests[0] as Sha256Digest
  }

  /** Imports a model and waits until it is announced. */
  async publish(files: Files = MODEL, as = 'me/model'): Promise<ShareResult> {
    const manifestDigest = await this.importFiles(files, as)
    return this.announced(manifestDigest)
  }

  announced(manifestDigest: string): Promise<ShareResult> {
    return eventually(async () => {
      const share = await this.share(manifestDigest)
      return share.announced ? share : undefined
    })
  }

  /** The start-up verification is over, also where it took longer than the start waits. */
  async verified(): Promise<void> {
    await eventually(async () => ((await this.client.status()).swarm.verifying === undefined ? true : undefined))
  }

  share(manifestDigest: string): Promise<ShareResult> {
    return this.client.share(refOf(manifestDigest))
  }

  async importBt(body: ImportBtBody): Promise<Job> {
    return this.done(await this.client.importBt(body))
  }

  async ensure(manifestDigest: string): Promise<Job> {
    return this.done(await this.client.ensure({ ref: refOf(manifestDigest) }))
  }

  async done(job: Job): Promise<Job> {
    return this.client.waitJob(job, { intervalMs: 10 })
  }

  /** Every blob of the artifact is here and hashes to its address. */
  async expectWhole(manifestDigest: string): Promise<void> {
    const job = await this.done(await this.client.verify({ target: manifestDigest }))
    expect(job).toMatchObject({ state: 'done', verify: {} })
  }

  /** Whatever is addressable hashes to its address. */
  async expectSound(): Promise<void> {
    const { verify } = await this.done(await this.client.verify({ target: 'all' }))
    // what an interrupted import has not brought yet may be missing; nothing may be wrong
    expect({ mismatched: [], stateErrors: [], ...verify }).toMatchObject({ mismatched: [], stateErrors: [] })
  }

  /** Digests of all blobs. */
  blobs(): string[] {
    const folder = join(this.root, 'blobs', 'sha256')
    if (!existsSync(folder)) return []
    return readdirSync(folder).flatMap((two) => readdirSync(join(folder, two)).map((rest) => `sha256:${two}${rest}`))
  }

  blobPath(digest: string): string {
    const hex = digest.slice('sha256:'.length)
    return join(this.root, 'blobs', 'sha256', hex.slice(0, 2), hex.slice(2))
  }
}

export const refOf = (manifestDigest: string): string => `svc:///some/model@${manifestDigest}`

/** The body of a pinned import from a share, with other hints where given. */
export const pinned = (
  { infohash, manifestDigest, companions, webseeds, peers }: ShareResult,
  hints: Partial<ImportBtBody> = {}
): ImportBtBody => ({
  infohash,
  manifestDigest,
  ...(companions !== undefined && { companions }),
  webseeds: [...webseeds],
  peers: [...peers],
  ...hints
})

/** Without what lies beside the model: an import waits for peers that have it, where the sources of a test do not. */
export const modelAlone = ({ companions: _, ...share }: ShareResult): ShareResult => share

/** Asks until there is an answer. */
export async function eventually<T>(ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
  let answer = await ask()
  await until(
    () => answer !== undefined,
    async () => {
      answer = await ask()
    }
  )
  return answer!
}

export async function refusal(
  work: Promise<unknown>
): Promise<{ readonly code: string; readonly status: number | undefined; readonly message: string }> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof ClientError)) throw error
    return { code: error.code, status: error.status, message: error.message }
  }
  throw new Error('it was accepted')
}
