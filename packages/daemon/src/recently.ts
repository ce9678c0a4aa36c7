import type { Clock } from '@svc/internal-clock'

/** Caches the result of `make` for `maxAgeMs` and one `version`; concurrent callers share it. A failure is not cached. */
export function recently<T>(clock: Clock, maxAgeMs: number, make: () => Promise<T>): (version?: number) => Promise<T> {
  let last: { readonly atMs: number; readonly version: number; readonly made: Promise<T> } | undefined
  return (version = 0) => {
    if (last?.version === version && clock.monotonic() - last.atMs < maxAgeMs) return last.made
    const now = { atMs: clock.monotonic(), version, made: make() }
    last = now
    now.made.catch(() => {
      if (last === now) last = undefined
    })
    return now.made
  }
}
