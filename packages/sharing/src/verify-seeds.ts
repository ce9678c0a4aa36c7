import type { VerifyStatus } from '@svc/cas'
import type { ArtifactState, Library } from '@svc/library/parts'
import type { ArtifactTorrent } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { Verifying } from './status.ts'

const LOG_EVERY_MS = 5_000
/** Blobs verified concurrently: the store distributes them over its hashing threads. */
const PARALLEL_BLOBS = 4

/** A complete artifact that may be seeded. */
export interface SeedCandidate {
  readonly state: ArtifactState
  readonly torrent: ArtifactTorrent
}

interface Verification extends Pick<Library, 'store' | 'log' | 'clock'> {
  readonly signal: AbortSignal
  readonly onProgress: (progress: Verifying) => void
  /** Waited for. */
  readonly onVerified: (candidate: SeedCandidate, isSound: boolean) => Promise<void>
}

/** Re-hashes artifacts, some at a time; a blob that several share is hashed once. What is wrong with one is logged. */
export async function verifySeeds(
  candidates: readonly SeedCandidate[],
  { onProgress, onVerified, ...deps }: Verification
): Promise<void> {
  const sizes = new Map(
    candidates.flatMap(({ torrent }) => torrent.files.map(({ digest, length }) => [digest, length] as const))
  )
  const bytesTotal = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
  const progress = { artifactsDone: 0, artifactsTotal: candidates.length, bytesDone: 0, bytesTotal }
  const report = (): void => onProgress({ ...progress })
  report()
  const { clock, log } = deps
  const timer = clock.every(LOG_EVERY_MS, () => log.info(progress, 'verifying what will be seeded'))
  const statusOf = statusesIn(deps, (digest) => {
    progress.bytesDone += sizes.get(digest)!
    report()
  })
  const queue = [...candidates]
  const work = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      await onVerified(next, await isSound(next, statusOf, deps))
      progress.artifactsDone++
      report()
    }
  }
  try {
    await Promise.all(Array.from({ length: PARALLEL_BLOBS }, work))
  } finally {
    timer.cancel()
  }
}

type StatusOf = (digest: Sha256Digest) => Promise<VerifyStatus>
type Hashing = Pick<Verification, 'store' | 'log' | 'signal'>

/** Hashes each blob once, whoever asks. */
function statusesIn({ store, signal }: Hashing, onHashed: (digest: Sha256Digest) => void): StatusOf {
  const checks = new Map<Sha256Digest, Promise<VerifyStatus>>()
  return (digest) => {
    let check = checks.get(digest)
    if (check === undefined) {
      check = store.verify(digest, { signal }).then(({ status }) => {
        onHashed(digest)
        return status
      })
      checks.set(digest, check)
    }
    return check
  }
}

async function isSound({ torrent }: SeedCandidate, statusOf: StatusOf, { log, signal }: Hashing): Promise<boolean> {
  let sound = true
  for (const { digest: blob } of torrent.files) {
    signal.throwIfAborted()
    const about = { manifest: torrent.manifestDigest, blob }
    try {
      const status = await statusOf(blob)
      if (status === 'ok') continue
      log.error(
        { ...about, status },
        'a blob is corrupt or missing: it was moved to quarantine, and its artifact is not announced; ensure can repair it'
      )
    } catch (error) {
      signal.throwIfAborted()
      log.error({ err: error, ...about }, 'a blob cannot be read: its artifact is not announced')
    }
    sound = false
  }
  return sound
}
