import type { Job } from '@svc/client/protocol'
import { formatRef, type Sha256Digest, tryParseRef } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { endAway } from '../library/away.ts'
import type { Library } from '../library/library.ts'
import { presenceOf } from '../library/open.ts'
import type { FillContext, Filler } from './fill.ts'
import type { JobStart } from './job-work.ts'
import type { JobRegistry } from './registry.ts'

export interface EnsureDeps extends Pick<Library, 'resolver' | 'store' | 'documents' | 'artifacts'> {
  /** As in {@link JobStart}. */
  readonly lane?: JobStart['lane']
  readonly jobs: JobRegistry
  readonly filler: Filler
}

/** The job of a refused reference shows it as it was sent, but a body of a megabyte must not be kept. */
const MAX_SHOWN_REF = 512

/**
 * POST /v1/ensure: implements the state table of spec job.3. An invalid reference gives a failed job, not an error
 * response.
 */
export async function ensure(
  text: string,
  deps: EnsureDeps,
  { mayEvict = false }: Partial<Pick<FillContext, 'mayEvict'>> = {}
): Promise<Job> {
  const { resolver, store, documents, jobs, lane } = deps
  const parsed = tryParseRef(text)
  const start = {
    kind: 'ensure',
    ref: parsed === undefined ? shownRef(text) : formatRef(parsed),
    ...(lane && { lane })
  } as const
  let manifestDigest: Sha256Digest | undefined
  try {
    const { manifestDigest: digest, indexDigest } = await resolver.resolve(text)
    manifestDigest = digest
    const { manifest, missing } = await presenceOf(store, documents, digest, indexDigest)
    if (manifest === undefined) {
      throw new DaemonError(
        'E_SOURCE_UNAVAILABLE',
        `the manifest ${digest} is not in the store; import it with /v1/import/local, /v1/import/hf, /v1/import/bt or /v1/import/catalog`
      )
    }
    const absent = new Set<Sha256Digest>(missing)
    const present = manifest.files.filter((file) => !absent.has(file.digest))
    const bytesTotal = manifest.files.reduce((sum, file) => sum + file.size, 0)
    const bytesPresent = present.reduce((sum, file) => sum + file.size, 0)
    const described = { ...start, manifest: digest, filesTotal: manifest.files.length, bytesTotal }
    if (present.length === manifest.files.length) {
      await endAway(digest, deps)
      return jobs.settled(described, { filesDone: present.length, bytesDone: bytesPresent })
    }
    const { filler } = deps
    const artifact = await deps.artifacts.read(digest)
    if (!filler.canFill(artifact)) {
      throw new DaemonError(
        'E_SOURCE_UNAVAILABLE',
        `${absent.size} blobs of ${digest} are missing and the swarm client is off; set "[swarm] enabled" to true in the configuration, or import the model again`
      )
    }
    return jobs.start(described, async ({ signal, update }) => {
      update({ filesDone: present.length, bytesDone: bytesPresent })
      const request = {
        manifestDigest: digest,
        manifest,
        missing: [...absent].filter((each) => each !== indexDigest),
        artifact
      }
      await filler.fill(request, {
        signal,
        mayEvict,
        onProgress: ({ filesDone, bytesDone, active }) =>
          update({
            filesDone: Math.min(manifest.files.length, present.length + filesDone),
            bytesDone: Math.min(bytesTotal, bytesPresent + bytesDone),
            ...(active !== undefined && { files: [...active] })
          })
      })
      update({ filesDone: manifest.files.length, bytesDone: bytesTotal })
      const beside = await filler.fillBeside(digest, { signal, update })
      return beside === undefined ? {} : { result: { manifests: [digest], skipped: 0, ...beside } }
    })
  } catch (error) {
    if (error instanceof DaemonError && (error.code === 'E_SHUTTING_DOWN' || error.code === 'E_RATE_LIMITED'))
      throw error
    return jobs.failed({ ...start, ...(manifestDigest !== undefined && { manifest: manifestDigest }) }, error)
  }
}

const shownRef = (text: string): string => (text.length <= MAX_SHOWN_REF ? text : `${text.slice(0, MAX_SHOWN_REF)}…`)
