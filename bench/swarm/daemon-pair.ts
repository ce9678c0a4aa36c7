import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type BenchDaemon, DaemonLauncher } from '../harness/daemon.ts'
import { writeSafetensors } from '../harness/model-files.ts'

const CONFIG = '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\nseed_on_import = true\n'
const WARM_UP_BYTES = 12 << 20

interface Share {
  readonly announced: boolean
  readonly magnet: string
  readonly manifestDigest: string
}

/**
 * Two built daemons on loopback: one seeds a model, the other imports it by its pin. This measures the whole download path: peer
 * protocol or webseed, Merkle and SHA-256 verification, synced writes to the store. Each measurement uses a fresh leech, warmed up by
 * a small import, so that one-time module loading does not count.
 */
export class DaemonPair {
  readonly #root: string
  readonly #launcher: DaemonLauncher
  readonly #sizeBytes: number
  readonly #seed: BenchDaemon
  readonly #share: Share
  readonly #warmUp: Share

  private constructor(
    root: string,
    launcher: DaemonLauncher,
    sizeBytes: number,
    seed: BenchDaemon,
    share: Share,
    warmUp: Share
  ) {
    this.#root = root
    this.#launcher = launcher
    this.#sizeBytes = sizeBytes
    this.#seed = seed
    this.#share = share
    this.#warmUp = warmUp
  }

  static async start(root: string, sizeBytes: number): Promise<DaemonPair> {
    const folder = (name: string): string => {
      const path = join(root, name)
      mkdirSync(path, { mode: 0o700, recursive: true })
      return path
    }
    const model = folder('model')
    const warmUp = folder('warm-up')
    writeSafetensors(model, 'model.safetensors', sizeBytes)
    writeSafetensors(warmUp, 'model.safetensors', WARM_UP_BYTES)
    const launcher = new DaemonLauncher({ source: false })
    const seed = await launcher.start({ root: folder('seed'), config: CONFIG })
    await seed.api.job('/v1/import/local', { paths: [model], as: 'bench/model' })
    await seed.api.job('/v1/import/local', { paths: [warmUp], as: 'bench/warm' })
    const shared = async (name: string): Promise<Share> => {
      for (;;) {
        const ref = encodeURIComponent(`svc:///bench/${name}:bf16`)
        const share = (await seed.api.get(`/v1/share?ref=${ref}`)) as Share
        if (share.announced) return share
        await delay(50)
      }
    }
    return new DaemonPair(root, launcher, sizeBytes, seed, await shared('model'), await shared('warm'))
  }

  /** From the request until the job has completed durably. */
  async measure(): Promise<{
    readonly megabytesPerSecond: number
    readonly leechCpu: number
    readonly seedCpu: number
  }> {
    const root = join(this.#root, 'leech')
    mkdirSync(root, { mode: 0o700 })
    const leech = await this.#launcher.start({ root, config: CONFIG })
    try {
      const fill = ({ magnet, manifestDigest }: Share): Promise<{ readonly seconds: number }> =>
        leech.api.job('/v1/import/bt', { magnet, manifestDigest })
      await fill(this.#warmUp)
      const before = [leech.cpuSeconds(), this.#seed.cpuSeconds()] as const
      const { seconds } = await fill(this.#share)
      const gigabytes = this.#sizeBytes / 1e9
      return {
        megabytesPerSecond: (gigabytes * 1000) / seconds,
        leechCpu: (leech.cpuSeconds() - before[0]) / gigabytes,
        seedCpu: (this.#seed.cpuSeconds() - before[1]) / gigabytes
      }
    } finally {
      await leech.stop()
      rmSync(root, { recursive: true, force: true })
    }
  }

  async stop(): Promise<void> {
    await this.#seed.stop()
  }
}
