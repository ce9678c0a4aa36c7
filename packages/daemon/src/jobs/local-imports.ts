import type { AdoptBody, AdoptPlan, ImportLocalBody, Job } from '@svc/client/protocol'
import {
  adoptedSource,
  type ConfirmPublic,
  importSelectionOf,
  importTarget,
  type Library,
  localSource,
  type Offload,
  selectedQuants,
  toolsHere
} from '@svc/library/parts'
import type { SwarmConfig } from '../config/config.ts'
import { writeKey } from '../config/edit.ts'
import type { ImportJobs } from './import-jobs.ts'

export interface LocalDeps extends Pick<Library, 'clock' | 'store' | 'advise'> {
  readonly importJobs: ImportJobs
  readonly offload: Offload
  /** Absent if there is no hub to ask. */
  readonly confirmPublic?: ConfirmPublic | undefined
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
    const repo = importTarget(as, 'as')
    const selection = importSelectionOf(more, this.#seedLocal === false)
    return this.#deps.importJobs.start({
      kind: 'import-local',
      ref: as,
      repo,
      source: await localSource(paths, { as, companions, tools: toolsHere(), advise: this.#deps.advise }),
      selection
    })
  }

  /**
   * Blobs that are here by the given digests are not read again. Other bytes end the job with `E_NOT_IMPORTABLE`, and
   * the file's name as the only candidate. @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`
   */
  async adopt(body: AdoptBody): Promise<Job> {
    const { as, replace } = body
    const repo = importTarget(as, 'as')
    const selection = importSelectionOf(choiceOf(body), this.#seedLocal === false)
    return this.#deps.importJobs.start({
      kind: 'import-local',
      ref: as,
      repo,
      source: await adoptedSource(body, { ...this.#deps, tools: toolsHere() }),
      // the commit in a cache may be older than the local one
      selection: { ...selection, mayReplace: replace !== false }
    })
  }

  /**
   * Reads no more than the headers of safetensors, and sends no request.
   * @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`; ClassifyError `E_NOT_IMPORTABLE`
   */
  async planAdopt(body: AdoptBody): Promise<AdoptPlan> {
    const { clock, offload, store } = this.#deps
    importTarget(body.as, 'as')
    const source = await adoptedSource(body, { clock, store, tools: toolsHere() })
    const selection = importSelectionOf(choiceOf(body))
    try {
      return { quants: await selectedQuants(source, selection, offload, new AbortController().signal) }
    } finally {
      await source.close()
    }
  }
}

/** In this body, `files` are no globs. */
const choiceOf = ({ files: _, ...choice }: AdoptBody) => choice
