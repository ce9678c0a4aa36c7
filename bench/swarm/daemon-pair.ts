import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { DaemonLauncher } from '../harness/daemon.ts'
import { writeSafetensors } from '../harness/model-files.ts'

const CONFIG = '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\nseed_on_import = true\n'
const WARM_UP_BYTES = 12 << 20

interface Share {
  readonly announced: boolean
  readonly magnet: string
  readonly manifestDigest: string
}

/** Two built daemons; see {@link startDaemonPair}. */
export interface DaemonPair {
  /** From the request until the job has completed durably. */
  measure(): Promise<{
    readonly megabytesPerSecond: number
    readonly leechCpu: number
    readonly seedCpu: number
  }>
  stop(): Promise<void>
}

/**
 * Two built daemons on loopback: one seeds a model, the other imports it by its pin. This measures the whole download path: peer
 * protocol or webseed, Merkle and SHA-256 verification, synced writes to the store. Each measurement uses a fresh leech, warmed up by
 * a small import, so that one-time module loading does not count.
 */
export async function startDaemonPair(root: string, sizeBytes: number): Promise<DaemonPair> {
  const folder = (name: string): string => {
    const path = join(root, name)
    mkdirSync(path, { mode: 0o700, recursive: true })
    return path
  }
  const launcher = new DaemonLauncher({ source: false })
  const seed = await launcher.start({ root: folder('seed'), config: CONFIG })
  const share = async (name: string, bytes: number): Promise<Share> => {
    writeSafetensors(folder(name), 'model.safetensors', bytes)
    await seed.api.job('/v1/import/local', { paths: [folder(name)], as: `bench/${name}` })
    const ref = encodeURIComponent(`svc:///bench/${name}:bf16`)
    for (;;) {
      const shared = (await seed.api.get(`/v1/share?ref=${ref}`)) as Share
      if (shared.announced) return shared
      await delay(50)
    }
  }
  const model = await share('model', sizeBytes)
  const warmUp = await share('warm', WARM_UP_BYTES)
  return {
    measure: async () => {
      const leech = await launcher.start({ root: folder('leech'), config: CONFIG })
      try {
        const fill = ({ magnet, manifestDigest }: Share): Promise<{ readonly seconds: number }> =>
          leech.api.job('/v1/import/bt', { magnet, manifestDigest })
        await fill(warmUp)
        const before = [leech.cpuSeconds(), seed.cpuSeconds()] as const
        const { seconds } = await fill(model)
        const gigabytes = sizeBytes / 1e9
        return {
          megabytesPerSecond: (gigabytes * 1000) / seconds,
          leechCpu: (leech.cpuSeconds() - before[0]) / gigabytes,
          seedCpu: (seed.cpuSeconds() - before[1]) / gigabytes
        }
      } finally {
        await leech.stop()
        rmSync(join(root, 'leech'), { recursive: true, force: true })
      }
    },
    stop: () => seed.stop()
  }
}
