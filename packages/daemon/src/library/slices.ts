import { yieldToEventLoop } from '@svc/internal-concurrency'

const SLICE_MS = 2

/** Long work on the event loop's thread, in slices of 2 ms: between them others have their turn. */
export class Slices {
  #end = performance.now() + SLICE_MS

  /** True when it is the others' turn; then call {@link next}. */
  get isOver(): boolean {
    return performance.now() > this.#end
  }

  /** Resolves when the others had their turn. */
  async next(): Promise<void> {
    await yieldToEventLoop()
    this.#end = performance.now() + SLICE_MS
  }
}
