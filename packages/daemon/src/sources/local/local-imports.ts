import type { AdoptBody, AdoptPlan, ImportLocalBody, Job } from '@svc/client/protocol'
import type { SwarmConfig } from '../../config/config.ts'
import { writeKey } from '../../config/edit.ts'
import { selectedQuants } from '../../import/choice.ts'
import type { Importer } from '../../import/importer.ts'
import { importSelectionOf } from '../../import/selection.ts'
import { importTarget } from '../../import/target.ts'
import type { Library } from '../../library/library.ts'
import type { Offload } from '../../offload/pool.ts'
import type { HubConfirmation } from '../hub/confirm.ts'
import { adoptedSource } from './adopted.ts'
import { localSource } from './source.ts'

export interface LocalDeps extends Pick<Library, 'clock' | 'store'> {
  readonly importer: Importer
  readonly offload: Offload
  /** Absent if there is no hub to ask. */
  readonly confirmation?: HubConfirmation | undefined
  readonly config: { readonly file?: string; readonly swarm: Pick<SwarmConfig, 'seedLocal'> }
}

export class LocalImports {
  readonly #deps: LocalDeps
  #seedLocal: boolean | undefined

  constructor(deps: LocalDeps) {
    this.#deps = deps
    this.#seedLocal = deps.config.swarm.seedLocal
  }

  /** Whether the user's own models are shared; undefined while not decided, which means yes. */
  get seedLocal(): boolean | undefined {
    return this.#seedLocal
  }

  /** Takes effect at once, and is saved in the configuration file, if there is one. @throws ConfigError */
  async decideSeedLocal(seedLocal: boolean): Promise<{ readonly seedLocal: boolean; readonly file?: string }> {
    const { file } = this.#deps.config
    if (file !== undefined) await writeKey(file, { swarm: { seed_local: seedLocal } })
    this.#seedLocal = seedLocal
    return { seedLocal, ...(file !== undefined && { file }) }
  }

  /**
   * Before the job, only headers of safetensors are read, and only if a quant is chosen.
   * @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`, `E_NO_MEMBER`
   */
  async importLocal({ paths, as, companions, ...more }: ImportLocalBody): Promise<Job> {
    const { importer } = this.#deps
    const repo = importTarget(as, 'as')
    const selection = importSelectionOf(more, this.#seedLocal === false)
    return importer.start({
      kind: 'import-local',
      ref: as,
      repo,
      source: await localSource(paths, companions),
      selection
    })
  }

  /**
   * Blobs that are here by the given digests are not read again. Other bytes end the job with `E_NOT_IMPORTABLE`, and
   * the file's name as the only candidate. @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`
   */
  async adopt({ files, as, hub, ...more }: AdoptBody): Promise<Job> {
    const { clock, importer, store, confirmation } = this.#deps
    const repo = importTarget(as, 'as')
    const selection = importSelectionOf(more, this.#seedLocal === false)
    return importer.start({
      kind: 'import-local',
      ref: as,
      repo,
      source: await adoptedSource(files, hub, { clock, store, confirmation }),
      // the commit in a cache may be older than the local one
      selection: { ...selection, mayReplace: more.replace !== false }
    })
  }

  /**
   * Reads no more than the headers of safetensors, and sends no request.
   * @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`; ClassifyError `E_NOT_IMPORTABLE`
   */
  async planAdopt({ files, as, hub, ...more }: AdoptBody): Promise<AdoptPlan> {
    const { clock, offload, store } = this.#deps
    importTarget(as, 'as')
    const source = await adoptedSource(files, hub, { clock, store })
    try {
      return { quants: await selectedQuants(source, importSelectionOf(more), offload, new AbortController().signal) }
    } finally {
      await source.close()
    }
  }
}
