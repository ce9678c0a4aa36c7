import type { DiskBlobStore } from '@svc/cas'
import type { AdoptBody, ImportLocalBody, Job } from '@svc/client/protocol'
import type { SwarmConfig } from '../../config/config.ts'
import { rememberSeedLocal } from '../../config/remember.ts'
import type { Importer } from '../../import/importer.ts'
import { importTarget } from '../../import/target.ts'
import { wishesOf } from '../../import/wishes.ts'
import { adoptedSource } from './adopted.ts'
import { localSource } from './source.ts'

/** What imports from disk need of the daemon. */
export interface LocalDeps {
  readonly importer: Importer
  readonly store: Pick<DiskBlobStore, 'stat'>
  readonly config: { readonly file?: string; readonly swarm: Pick<SwarmConfig, 'seedLocal'> }
}

/** Imports from the disks of this machine. */
export class LocalImports {
  readonly #deps: LocalDeps
  #seedLocal: boolean | undefined

  constructor(deps: LocalDeps) {
    this.#deps = deps
    this.#seedLocal = deps.config.swarm.seedLocal
  }

  /** Whether models of one's own are given to others; undefined while nobody has decided, which means yes. */
  get seedLocal(): boolean | undefined {
    return this.#seedLocal
  }

  /** Holds from now on, and is written into the configuration file, where there is one. @throws ConfigError */
  async decideSeedLocal(seedLocal: boolean): Promise<{ readonly seedLocal: boolean; readonly file?: string }> {
    const { file } = this.#deps.config
    if (file !== undefined) await rememberSeedLocal(file, seedLocal)
    this.#seedLocal = seedLocal
    return { seedLocal, ...(file !== undefined && { file }) }
  }

  /**
   * Walks the paths, and accepts the job. Nothing is read before that, but for headers of safetensors where a quant is chosen.
   * @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`, `E_NO_MEMBER`
   */
  async importLocal({ paths, as, ...more }: ImportLocalBody): Promise<Job> {
    const { importer } = this.#deps
    const repo = importTarget(as, 'as')
    const wishes = wishesOf(more, this.#seedLocal === false)
    return importer.start({ kind: 'import-local', ref: as, repo, source: await localSource(paths), wishes })
  }

  /**
   * Looks at the files, and accepts the job. Blobs that are here already by the digests given are not read again; other bytes than
   * promised end the job with `E_NOT_IMPORTABLE` and the file's name as the only candidate.
   * @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`
   */
  async adopt({ files, as, hub, ...more }: AdoptBody): Promise<Job> {
    const { importer, store } = this.#deps
    const repo = importTarget(as, 'as')
    const wishes = wishesOf(more, this.#seedLocal === false)
    return importer.start({
      kind: 'import-local',
      ref: as,
      repo,
      source: await adoptedSource(files, hub, store),
      wishes
    })
  }
}
