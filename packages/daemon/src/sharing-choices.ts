import type { DownloadLimitResult, SeedResult, UploadLimitResult } from '@svc/client/protocol'
import { KeyedLock } from '@svc/internal-concurrency'
import type { SharedDownloadLimit } from '@svc/internal-net'
import type { SwarmClient } from '@svc/sharing/parts'
import type { SwarmConfig } from './config/config.ts'
import { writeKey } from './config/edit.ts'
import { DaemonError } from './errors.ts'

interface SharingDeps {
  readonly config: { readonly file?: string; readonly swarm: SwarmConfig }
  readonly swarm: Pick<SwarmClient, 'prepareSeeding' | 'seedChanged' | 'limitChanged'> | undefined
  readonly downloads: SharedDownloadLimit
  /** Joins or leaves its torrents when it is started again. */
  readonly catalog: { start(): Promise<void> } | undefined
}

/** The owner's decisions on what peers get, and how fast bytes come and go. Each takes effect at once, and is saved in the configuration file, if there is one. */
export class SharingChoices {
  readonly #deps: SharingDeps
  readonly #turns = new KeyedLock()

  constructor(deps: SharingDeps) {
    this.#deps = deps
  }

  /** @throws ConfigError, DaemonError */
  decideSeed(seed: boolean): Promise<SeedResult> {
    return this.#turns.run('seed', undefined, () => this.#switchSeed(seed))
  }

  /** @throws ConfigError */
  async limitUpload(bytesPerSecond: number): Promise<UploadLimitResult> {
    const { config, swarm } = this.#deps
    const { file, swarm: habits } = config
    if (file !== undefined) await writeKey(file, { swarm: { upload_limit: bytesPerSecond } })
    habits.uploadLimitBytesPerSecond = bytesPerSecond
    swarm?.limitChanged()
    return { bytesPerSecond, ...(file !== undefined && { file }) }
  }

  /** @throws ConfigError */
  async limitDownload(bytesPerSecond: number): Promise<DownloadLimitResult> {
    const { config, downloads } = this.#deps
    const { file } = config
    if (file !== undefined) await writeKey(file, { network: { download_limit: bytesPerSecond } })
    downloads.bytesPerSecond = bytesPerSecond
    return { bytesPerSecond, ...(file !== undefined && { file }) }
  }

  async #switchSeed(seed: boolean): Promise<SeedResult> {
    const { config, swarm, catalog } = this.#deps
    const { file, swarm: habits } = config
    if (seed)
      await swarm?.prepareSeeding().catch((cause: Error) => {
        const why = `[swarm] webseed_addr = "${habits.webseedAddr}": ${cause.message}`
        throw new DaemonError('E_BAD_REQUEST', `sharing stays off: ${why}`, { cause })
      })
    if (file !== undefined) await writeKey(file, { swarm: { seed } })
    if (habits.seed !== seed) {
      habits.seed = seed
      await swarm?.seedChanged()
      await catalog?.start()
    }
    return { seed, ...(file !== undefined && { file }) }
  }
}
