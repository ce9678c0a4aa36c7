import type { ImportBtBody, Job } from '@svc/client/protocol'
import { formatRepoId, type Sha256Digest } from '@svc/ref'
import type { PinnedRequest, SwarmClient } from '@svc/sharing/parts'
import { type EnsureJobDeps, startEnsure } from './ensure-job.ts'
import { UnwantedError } from './registry.ts'

export interface SwarmJobsDeps extends Omit<EnsureJobDeps, 'filler' | 'lane'> {
  readonly swarm: Pick<SwarmClient, 'pinned' | 'importPinned' | 'giveUp' | 'restOf' | 'filler'>
}

/** Pinned imports as jobs, and fetches for the clients of mirrors. */
export class SwarmJobs {
  readonly #deps: SwarmJobsDeps

  constructor(deps: SwarmJobsDeps) {
    this.#deps = deps
  }

  async importBt(body: ImportBtBody): Promise<Job> {
    return this.#start(this.#deps.swarm.pinned(body))
  }

  /**
   * Fetches the missing files of an artifact: the rest of an interrupted pinned import, or else an ensure.
   * @throws LibraryError `E_NOT_FOUND` for an unknown manifest
   */
  async fetchRest(manifestDigest: Sha256Digest): Promise<Job> {
    const { swarm } = this.#deps
    const rest = await swarm.restOf(manifestDigest)
    if (rest !== undefined) return this.#start(rest)
    const ref = `svc:///by/digest@${manifestDigest}`
    return startEnsure(ref, { ...this.#deps, filler: swarm.filler, lane: 'demand' })
  }

  #start(request: PinnedRequest): Job {
    const { jobs, swarm } = this.#deps
    const { infohashText: ref, repo, pin, isResumed = false } = request
    const as = repo && formatRepoId(repo)
    return jobs.start(
      { kind: 'import-bt', ref, filesTotal: 1, ...(as !== undefined && { as }), ...(isResumed && { lane: 'demand' }) },
      async (work) => ({ manifest: pin, result: await swarm.importPinned(request, work) }),
      async (aborted) => {
        if (aborted instanceof UnwantedError) await swarm.giveUp(request)
      }
    )
  }
}
