import type { JobKind } from '@svc/client/protocol'
import { Gate } from '@svc/internal-concurrency'

/** How many jobs of a kind run at once; others wait in order. A verify reads everything, so one is enough. */
export const LANE_WIDTHS: Readonly<Record<JobKind, number>> = {
  ensure: 8,
  'import-local': 2,
  'import-hf': 2,
  'import-bt': 4,
  'import-catalog': 2,
  'import-oci': 2,
  companions: 2,
  verify: 1,
  gc: 1,
  evict: 1,
  outdated: 1
}

/** Enough for all jobs that mirrors start, so that none waits here. */
const DEMAND_WIDTH = 8

/** A first-in, first-out queue per kind of job, and one for jobs of strangers. */
export class Lanes {
  readonly #gates: ReadonlyMap<string, Gate> = new Map(
    Object.entries({ ...LANE_WIDTHS, demand: DEMAND_WIDTH }).map(([lane, width]) => [lane, new Gate(width)])
  )

  /**
   * Runs `work` when the lane has room, in a later turn of the event loop at the earliest. An abort while waiting
   * rejects with its reason.
   */
  async run<T>(lane: JobKind | 'demand', signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await Promise.resolve()
    return this.#gates.get(lane)!.run(signal, () => {
      signal.throwIfAborted()
      return work()
    })
  }
}
