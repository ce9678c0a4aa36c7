import type { Worker } from 'node:worker_threads'

/** How long a spare thread waits for somebody who needs one, in milliseconds. */
const KEEP_MS = 10_000
/** Spare threads of the process, of all kinds together: each holds some 6 MiB. */
const MAX_SPARES = 16

interface Spare {
  readonly kind: string
  readonly worker: Worker
  /** Takes the listeners off and stops the clock. */
  readonly forget: () => void
}

/**
 * Threads whose owners are gone, and which hold nothing of them. Whoever opens and closes stores or engines one after the other (an
 * application that embeds them, a test) pays for their start once: that is some 60 ms of CPU for each, mostly Node's own.
 * Invariant: a spare owes no answer and does not hold the process open.
 */
const spares: Spare[] = []

/** A spare thread of that kind, with no listener on it. The one that came last, since its memory is warm. */
export function takeSpare(kind: string): Worker | undefined {
  const at = spares.findLastIndex((spare) => spare.kind === kind)
  const [spare] = at === -1 ? [] : spares.splice(at, 1)
  spare?.forget()
  return spare?.worker
}

/** Keeps a thread for {@link takeSpare} for ten seconds. False when there are enough of them: the caller ends it. */
export function keepSpare(kind: string, worker: Worker): boolean {
  if (spares.length >= MAX_SPARES) return false
  const forget = (): void => {
    clearTimeout(timer)
    worker.off('error', drop)
    worker.off('exit', drop)
  }
  const drop = (): void => {
    const at = spares.indexOf(spare)
    if (at !== -1) spares.splice(at, 1)
    forget()
    void worker.terminate()
  }
  const timer = setTimeout(drop, KEEP_MS)
  const spare: Spare = { kind, worker, forget }
  timer.unref()
  worker.on('error', drop)
  worker.on('exit', drop)
  worker.unref()
  spares.push(spare)
  return true
}
