import type { Clock } from '@svc/internal-clock'
import type { SwarmTorrent, TorrentProgress } from '@svc/swarm'

/** How long a fetch continues without progress. */
export interface FetchTimeouts {
  readonly clock: Clock
  /** After this long without a byte the fetch fails. */
  readonly fillTimeoutMs: number
  /** If there is neither a tracker nor a DHT to find others: after this long without a source the fetch fails. */
  readonly lonelyTimeoutMs: number | undefined
}

interface FollowedFetch<T> {
  readonly torrent: Pick<SwarmTorrent, 'progress' | 'once'>
  readonly done: Promise<T>
  /** The error for that of a torrent that failed. */
  readonly failure: (error: Error) => Error
  /** Called at each look; may throw. */
  readonly onProgress: (now: TorrentProgress) => void
  /** The error after a timeout: no byte came, or there was no source. */
  readonly gaveUp: (why: 'silent' | 'lonely', now: TorrentProgress) => Error
}

const LOOK_MS = 250

/** Waits for a fetch while bytes arrive. @throws the signal's reason, and the errors of the callbacks and of `done` */
export async function followFetch<T>(
  { torrent, done, failure, onProgress, gaveUp }: FollowedFetch<T>,
  { signal, clock, fillTimeoutMs, lonelyTimeoutMs }: FetchTimeouts & { readonly signal: AbortSignal }
): Promise<T> {
  const failed = new Promise<never>((_, reject) => torrent.once('failed', (error) => reject(failure(error))))
  const over = Promise.race([done, failed]).then((value) => ({ value }))
  over.catch(() => undefined)
  let bytes = -1
  let gotAtMs = clock.monotonic()
  let accompaniedAtMs = gotAtMs
  for (;;) {
    signal.throwIfAborted()
    const now = torrent.progress()
    onProgress(now)
    const nowMs = clock.monotonic()
    // no source can hurry our own disk
    const isChecking = now.state === 'checking'
    const bytesBefore = bytes
    bytes = now.verifiedBytes + now.downloadedBytes
    if (bytes !== bytesBefore || isChecking) gotAtMs = nowMs
    if (now.peers + now.webseeds > 0 || isChecking) accompaniedAtMs = nowMs
    if (nowMs - gotAtMs >= fillTimeoutMs) throw gaveUp('silent', now)
    if (lonelyTimeoutMs !== undefined && nowMs - accompaniedAtMs >= lonelyTimeoutMs) throw gaveUp('lonely', now)
    const pause = Promise.withResolvers<undefined>()
    const timer = clock.after(LOOK_MS, () => pause.resolve(undefined))
    try {
      const outcome = await Promise.race([over, pause.promise])
      if (outcome !== undefined) return outcome.value
    } finally {
      timer.cancel()
    }
  }
}
