import type { Job } from '@svc/client/protocol'
import type { TrackedJob } from './tracked-job.ts'

/** Jobs that are not over, by the artifact that they are about. Many learn it late. */
export class OpenIndex {
  readonly #jobs = new Map<string, Set<TrackedJob>>()

  /** The first accepted, or the first that learned it, comes first. */
  of(manifest: string): Job[] {
    return [...(this.#jobs.get(manifest) ?? [])].map(({ snapshot }) => snapshot)
  }

  add(job: TrackedJob): void {
    const { manifest } = job.snapshot
    if (manifest === undefined) return
    const jobs = this.#jobs.get(manifest)
    if (jobs === undefined) this.#jobs.set(manifest, new Set([job]))
    else jobs.add(job)
  }

  /** `manifest` is the one that it was added with. */
  delete(job: TrackedJob, manifest: string | undefined): void {
    if (manifest === undefined) return
    const jobs = this.#jobs.get(manifest)
    jobs?.delete(job)
    if (jobs?.size === 0) this.#jobs.delete(manifest)
  }
}
