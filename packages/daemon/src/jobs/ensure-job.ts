import type { Job } from '@svc/client/protocol'
import { type EnsureDeps, type FillContext, type Library, LibraryError, planEnsure } from '@svc/library/parts'
import { formatRef, type Sha256Digest, tryParseRef } from '@svc/ref'
import type { JobStart } from './job-work.ts'
import type { JobRegistry } from './registry.ts'

export interface EnsureJobDeps extends EnsureDeps, Pick<Library, 'resolver'> {
  readonly jobs: JobRegistry
  /** As in {@link JobStart}. */
  readonly lane?: JobStart['lane']
}

/** The job of a refused reference shows it as it was sent, but a body of a megabyte must not be kept. */
const MAX_SHOWN_REF = 512

/**
 * POST /v1/ensure: implements the state table of spec job.3. An invalid reference gives a failed job, not an error
 * response. @throws DaemonError `E_SHUTTING_DOWN`, `E_RATE_LIMITED`
 */
export async function startEnsure(
  text: string,
  deps: EnsureJobDeps,
  may: Partial<Pick<FillContext, 'mayEvict'>> = {}
): Promise<Job> {
  const { resolver, jobs, lane } = deps
  const parsed = tryParseRef(text)
  const ref = parsed === undefined ? shownRef(text) : formatRef(parsed)
  const start = { kind: 'ensure', ref, ...(lane && { lane }) } as const
  let manifest: Sha256Digest | undefined
  try {
    const resolved = await resolver.resolve(text)
    manifest = resolved.manifestDigest
    const { bring, filesTotal, bytesTotal, ...done } = await planEnsure(resolved, deps)
    const described = { ...start, manifest, filesTotal, bytesTotal }
    if (bring === undefined) return jobs.settled(described, done)
    return jobs.start(described, async (work) => {
      const beside = await bring(work, may)
      return beside === undefined ? {} : { result: { manifests: [manifest!], skipped: 0, ...beside } }
    })
  } catch (error) {
    if (error instanceof LibraryError && (error.code === 'E_SHUTTING_DOWN' || error.code === 'E_RATE_LIMITED'))
      throw error
    return jobs.failed({ ...start, ...(manifest !== undefined && { manifest }) }, error)
  }
}

const shownRef = (text: string): string => (text.length <= MAX_SHOWN_REF ? text : `${text.slice(0, MAX_SHOWN_REF)}…`)
