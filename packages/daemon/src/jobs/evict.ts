import type { EvictBody, Job, ViewEntry } from '@svc/client/protocol'
import { Gate } from '@svc/internal-concurrency'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { endAway, endAwayOfAll } from '../library/away.ts'
import { isEvictable, type KeptFact, keptFact } from '../library/eviction.ts'
import type { Library } from '../library/library.ts'
import { Unneeded } from '../library/unneeded.ts'
import type { Copies, CopyProof } from './copies.ts'
import type { JobOutcome } from './job-work.ts'
import type { JobRegistry } from './registry.ts'

export interface EvictDeps
  extends Pick<
    Library,
    'clock' | 'store' | 'artifacts' | 'documents' | 'resolver' | 'needed' | 'leafLayers' | 'views'
  > {
  readonly jobs: JobRegistry
  readonly copies: Copies
  readonly config: { readonly store: { readonly proofMs: number } }
  /** Called when it is away, so that no door serves it any more. */
  readonly onUnneeded: (manifestDigest: Sha256Digest) => Promise<void>
  /** Called when it stays after all, and may be served again. */
  readonly onKept: (manifestDigest: Sha256Digest) => Promise<void>
}

/** Why an artifact's weights stay, even if its sources have them. */
interface Kept {
  readonly fact: Exclude<KeptFact, 'unproven'>
  readonly why: string
}

export interface Freed {
  readonly blobs: number
  readonly bytes: number
}

/**
 * Frees the weights of artifacts, and keeps everything else. First the record durably says that they are away, then
 * they leave the swarm, then their bytes are removed as in a collection. After a crash in between, the next eviction or
 * collection removes them; if all of them are still here, they count as not evicted.
 */
export class Evictions {
  readonly #deps: EvictDeps
  /** One at a time, so that two do not count on the same copy. */
  readonly #turn = new Gate(1)

  constructor(deps: EvictDeps) {
    this.#deps = deps
  }

  /** POST /v1/evict. @throws as `Resolver.resolve`; DaemonError `E_NOT_FOUND` */
  async start({ ref, force = false }: EvictBody): Promise<Job> {
    const { resolver, jobs } = this.#deps
    const { ref: canonical, manifestDigest: manifest } = await resolver.resolveHere(ref)
    return jobs.start({ kind: 'evict', ref: canonical, manifest }, async ({ id, signal }): Promise<JobOutcome> => {
      const freed = await this.evict(manifest, { force, signal, jobId: id })
      return { result: { ...freed, evicted: [manifest] } }
    })
  }

  /** @throws DaemonError `E_KEPT`; errors of the store: then it is here as before, or away */
  evict(
    manifest: Sha256Digest,
    { force, signal, jobId }: { readonly force: boolean; readonly signal: AbortSignal; readonly jobId?: string }
  ): Promise<Freed> {
    return this.#turn.run(signal, async () => {
      const requireIdle = async (): Promise<void> => {
        const kept = await this.keptBy(manifest, { jobId })
        if (kept !== undefined) throw keptError(kept.why)
      }
      await requireIdle()
      if (!force) {
        const proof = await this.#deps.copies.prove(manifest, signal)
        if (keptFact({ kept: undefined, provenMs: proof.provenMs }, this.limits) !== undefined) throw unproven(proof)
        // sources take their time to answer
        await requireIdle()
      }
      signal.throwIfAborted()
      return this.#carryOut(manifest)
    })
  }

  get limits(): { readonly nowMs: number; readonly proofMs: number } {
    const { clock, config } = this.#deps
    return { nowMs: clock.now(), proofMs: config.store.proofMs }
  }

  async views(): Promise<readonly ViewEntry[]> {
    return (await this.#deps.views.list()).views
  }

  /** @param jobId a job to ignore @param views the current ones, if the caller has them */
  async keptBy(
    manifest: Sha256Digest,
    { jobId, views }: { readonly jobId?: string | undefined; readonly views?: readonly ViewEntry[] } = {}
  ): Promise<Kept | undefined> {
    const { artifacts, store, jobs } = this.#deps
    const standing = await artifacts.standing(manifest)
    if (standing === 'damaged') return { fact: 'in-use', why: 'its record is damaged (svc doctor)' }
    if (standing?.kept) return { fact: 'pinned', why: 'it is pinned (svc unpin)' }
    const view = viewsOf(manifest, views ?? (await this.views())).find(({ isIdle }) => !isIdle)
    if (view !== undefined) return { fact: 'viewed', why: `the view ${view.path} shows it (svc view --rm)` }
    const job = jobs.openOf(manifest).find(({ id }) => id !== jobId)
    if (job !== undefined) return { fact: 'in-use', why: `the job ${job.id.slice(0, 8)} works on it (svc cancel)` }
    const weights = await this.#weights(manifest)
    if (weights.some(({ digest }) => store.isLeased(digest)))
      return { fact: 'in-use', why: 'it is being read, or a running job needs it' }
    return undefined
  }

  async #carryOut(manifest: Sha256Digest): Promise<Freed> {
    const { artifacts, views, onUnneeded, onKept } = this.#deps
    const unneeded = new Unneeded(this.#deps)
    await endAwayOfAll(this.#deps, manifest)
    // while the needs are unknown, nothing changes
    await unneeded.read()
    const weights = await this.#weights(manifest)
    for (const { path } of viewsOf(manifest, await this.views()))
      if (!(await views.removeIdle(path))) throw keptError(`the view ${path} shows it (svc view --rm)`)
    if (!(await artifacts.setAway(manifest))) throw keptError('it was pinned just now (svc unpin)')
    await onUnneeded(manifest)
    let [blobs, bytes] = [0, 0]
    for (const digest of new Set(weights.map((file) => file.digest))) {
      const removed = await unneeded.take(digest, () => true)
      if (removed === undefined) continue
      blobs++
      bytes += removed.sizeBytes
    }
    if (blobs === 0 && (await endAway(manifest, this.#deps))) {
      await onKept(manifest)
      throw keptError(
        'nothing would be freed: other models, or a damaged record (svc doctor), may need them, or they are being read'
      )
    }
    return { blobs, bytes }
  }

  async #weights(manifest: Sha256Digest): Promise<Manifest['files']> {
    return (await this.#deps.documents.requireManifest(manifest)).files.filter(isEvictable)
  }
}

const viewsOf = (manifest: Sha256Digest, views: readonly ViewEntry[]) =>
  views
    .filter(({ manifestDigest, others = [] }) => manifestDigest === manifest || others.includes(manifest))
    .map(({ path, managed, heldUntil, making }) => ({
      path,
      isIdle: managed && heldUntil === undefined && making === undefined
    }))

const keptError = (why: string): DaemonError => new DaemonError('E_KEPT', `the model stays: ${why}`)

const unproven = ({ why }: CopyProof): DaemonError =>
  keptError(`no other copy of its weights is known (${why.join('; ')}); svc evict --force frees them anyway`)
