import { endAway, type Library, LibraryError, presenceOf, type Resolved } from '@svc/internal-state'
import type { Sha256Digest } from '@svc/ref'
import type { Beside, FillContext, Filler } from './fill.ts'
import type { Work } from './work.ts'

export interface EnsureDeps extends Pick<Library, 'store' | 'documents' | 'artifacts'> {
  readonly filler: Filler
}

/** What an artifact lacks, and how to bring it. */
export interface EnsurePlan {
  readonly filesDone: number
  readonly filesTotal: number
  readonly bytesDone: number
  readonly bytesTotal: number
  /** Absent if it is complete. @throws as `Filler.fill` @returns the companions that came with it, if any were wanted */
  readonly bring?: (
    work: Pick<Work, 'signal' | 'report'>,
    may: Partial<Pick<FillContext, 'mayEvict'>>
  ) => Promise<Beside | undefined>
}

/**
 * Looks up what an artifact lacks (spec job.3).
 * @throws LibraryError `E_SOURCE_UNAVAILABLE` without its manifest, or if nobody can be asked
 */
export async function planEnsure(
  { manifestDigest, indexDigest }: Pick<Resolved, 'manifestDigest' | 'indexDigest'>,
  deps: EnsureDeps
): Promise<EnsurePlan> {
  const { store, documents, artifacts, filler } = deps
  const { manifest, missing } = await presenceOf(store, documents, manifestDigest, indexDigest)
  if (manifest === undefined) {
    throw new LibraryError('E_SOURCE_UNAVAILABLE', `the manifest ${manifestDigest} is not in the store`, {
      advice: { to: 'import' }
    })
  }
  const absent = new Set<Sha256Digest>(missing)
  const present = manifest.files.filter((file) => !absent.has(file.digest))
  const [filesDone, filesTotal] = [present.length, manifest.files.length]
  const bytesTotal = manifest.files.reduce((sum, file) => sum + file.size, 0)
  const bytesDone = present.reduce((sum, file) => sum + file.size, 0)
  const plan = { filesDone, filesTotal, bytesDone, bytesTotal }
  const artifact = await artifacts.read(manifestDigest)
  // other imports may have brought the bytes of one that never was complete
  const isToComplete = artifact?.incomplete === true && filler.canFill(artifact)
  if (filesDone === filesTotal && !isToComplete) {
    await endAway(manifestDigest, deps)
    return plan
  }
  if (!filler.canFill(artifact)) {
    throw new LibraryError(
      'E_SOURCE_UNAVAILABLE',
      `${absent.size} blobs of ${manifestDigest} are missing, and no source or peer can be asked for them`,
      { advice: { to: 'allow-peers' } }
    )
  }
  const request = { manifestDigest, manifest, missing: [...absent].filter((each) => each !== indexDigest), artifact }
  const bring = async (
    { signal, report }: Pick<Work, 'signal' | 'report'>,
    { mayEvict = false }: Partial<Pick<FillContext, 'mayEvict'>>
  ): Promise<Beside | undefined> => {
    report({ filesDone, bytesDone })
    await filler.fill(request, {
      signal,
      mayEvict,
      onProgress: ({ filesDone: files, bytesDone: bytes, active }) =>
        report({
          filesDone: Math.min(filesTotal, filesDone + files),
          bytesDone: Math.min(bytesTotal, bytesDone + bytes),
          ...(active !== undefined && { files: [...active] })
        })
    })
    report({ filesDone: filesTotal, bytesDone: bytesTotal })
    return filler.fillBeside(manifestDigest, { signal, report })
  }
  return { ...plan, bring }
}
