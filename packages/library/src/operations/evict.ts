import { Gate } from '@svc/internal-concurrency'
import {
  type AdvicePlain,
  endAway,
  endAwayOfAll,
  isEvictable,
  type KeptFact,
  keptFact,
  type Library,
  LibraryError,
  type ListedView,
  Unneeded
} from '@svc/internal-state'
import type { Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { Copies, CopyProof } from './copies.ts'
import type { RunningWork } from './work.ts'

export interface EvictDeps
  extends Pick<
    Library,
    'clock' | 'store' | 'artifacts' | 'documents' | 'resolver' | 'needed' | 'leafLayers' | 'readerLeases' | 'views'
  > {
  readonly running: Pick<RunningWork, 'openOf'>
  readonly copies: Copies
  /** For how long an answer of a source counts. */
  readonly proofMs: number
  /** Called when it is away, so that no door serves it any more. */
  readonly onUnneeded: (manifestDigest: Sha256Digest) => Promise<void>
  /** Called when it stays after all, and may be served again. */
  readonly onKept: (manifestDigest: Sha256Digest) => Promise<void>
}

/** Why an artifact's weights stay, even if its sources have them. */
interface Kept {
  readonly fact: Exclude<KeptFact, 'unproven'>
  readonly why: string
  readonly advice?: AdvicePlain
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

  /** @throws LibraryError `E_KEPT`; errors of the store: then it is here as before, or away */
  evict(
    manifest: Sha256Digest,
    { force, signal, workId }: { readonly force: boolean; readonly signal: AbortSignal; readonly workId?: string }
  ): Promise<Freed> {
    return this.#turn.run(signal, async () => {
      const requireIdle = async (): Promise<void> => {
        const kept = await this.keptBy(manifest, { workId })
        if (kept !== undefined) throw keptError(kept.why, kept.advice)
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
    const { clock, proofMs } = this.#deps
    return { nowMs: clock.now(), proofMs }
  }

  async views(): Promise<readonly ListedView[]> {
    return this.#deps.views.list()
  }

  /** @param workId an operation to ignore @param views the current ones, if the caller has them */
  async keptBy(
    manifest: Sha256Digest,
    { workId, views }: { readonly workId?: string | undefined; readonly views?: readonly ListedView[] } = {}
  ): Promise<Kept | undefined> {
    const { artifacts, store, running } = this.#deps
    const standing = await artifacts.standing(manifest)
    if (standing === 'damaged') return { fact: 'in-use', why: 'its record is damaged', advice: 'examine-records' }
    if (standing?.kept) return { fact: 'pinned', why: 'it is pinned', advice: 'unkeep' }
    const view = viewsOf(manifest, views ?? (await this.views())).find(({ isIdle }) => !isIdle)
    if (view !== undefined) return { fact: 'viewed', why: `the view ${view.path} shows it`, advice: 'remove-view' }
    const job = running.openOf(manifest).find(({ id }) => id !== workId)
    if (job !== undefined)
      return { fact: 'in-use', why: `the job ${job.id.slice(0, 8)} works on it`, advice: 'cancel-work' }
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
      if (!(await views.removeIdle(path))) throw keptError(`the view ${path} shows it`, 'remove-view')
    if (!(await artifacts.setAway(manifest))) throw keptError('it was pinned just now', 'unkeep')
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
        'nothing would be freed: other models, or a damaged record, may need them, or they are being read',
        'examine-records'
      )
    }
    return { blobs, bytes }
  }

  async #weights(manifest: Sha256Digest): Promise<Manifest['files']> {
    return (await this.#deps.documents.requireManifest(manifest)).files.filter(isEvictable)
  }
}

const viewsOf = (manifest: Sha256Digest, views: readonly ListedView[]) =>
  views
    .filter(({ manifestDigest, others = [] }) => manifestDigest === manifest || others.includes(manifest))
    .map(({ path, managed, heldUntil, making }) => ({
      path,
      isIdle: managed && heldUntil === undefined && making === undefined
    }))

const keptError = (why: string, advice?: AdvicePlain): LibraryError =>
  new LibraryError('E_KEPT', `the model stays: ${why}`, { advice: advice && { to: advice } })

const unproven = ({ why }: CopyProof): LibraryError =>
  keptError(`no other copy of its weights is known (${why.join('; ')})`, 'evict-anyway')
