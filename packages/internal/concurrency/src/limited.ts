/** Waits for all, even if one fails. @throws the first error */
export async function allOf<T>(running: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(running)
  return Promise.all(running)
}

/** The step's result or, as soon as `signal` is aborted, the error that `aborted` makes; the step is not awaited then. */
export function orAbort<T>(step: Promise<T>, signal: AbortSignal, aborted: (signal: AbortSignal) => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(aborted(signal))
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    step.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/**
 * Runs `work` for every item, in order, at most `limit` at once. The first failure aborts the others; when this
 * settles, all have ended, and that failure is thrown.
 */
export async function forEachLimited<T>(
  items: readonly T[],
  limit: number,
  outer: AbortSignal | undefined,
  work: (item: T, signal: AbortSignal) => Promise<void>
): Promise<void> {
  const stop = new AbortController()
  const signal = outer === undefined ? stop.signal : AbortSignal.any([outer, stop.signal])
  let next = 0
  let failed = false
  let failure: unknown
  const lane = async (): Promise<void> => {
    while (next < items.length && !signal.aborted) {
      try {
        await work(items[next++]!, signal)
      } catch (error) {
        if (!failed) {
          failed = true
          failure = error
        }
        stop.abort(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, Math.min(limit, items.length)) }, lane))
  if (failed) throw failure
  outer?.throwIfAborted()
}
