import type { Worker } from 'node:worker_threads'

/** How long a spare thread is kept, in milliseconds. */
const KEEP_MS = 10_000
/** Limit of spare threads in the process, of all kinds together: each takes some 6 MiB. */
const MAX_SPARES = 16

interface Spare {
  readonly kind: string
  readonly worker: Worker
  /** Removes the listeners and stops the timer. */
  readonly forget: () => void
}

/**
 * Threads whose owners are closed, and which hold no state of them. Programs that open and close stores or engines
 * repeatedly (an application that embeds them, a test) so pay for starting threads only once: some 60 ms of CPU each,
 * mostly Node's own.
 *
 * Invariant: a spare owes no answer and does not keep the process alive.
 */
const spares: Spare[] = []

/** Takes a spare thread of that kind, without listeners. The most recent one, since its memory is warm. */
export function takeSpare(kind: string): Worker | undefined {
  const at = spares.findLastIndex((spare) => spare.kind === kind)
  const [spare] = at === -1 ? [] : spares.splice(at, 1)
  spare?.forget()
  return spare?.worker
}

/** All spare threads, of every kind. */
export function takeSpares(): readonly Worker[] {
  const taken = spares.splice(0)
  for (const { forget } of taken) forget()
  return taken.map(({ worker }) => worker)
}

/** Keeps a thread for {@link takeSpare} for ten seconds. False when there are enough spares: the caller ends it. */
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
