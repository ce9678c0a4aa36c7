import type { BodyConsumer } from './exchange.ts'
import type { RangeWriter } from './range-writer.ts'

/** The rest of a response is not needed. */
export const ENOUGH = new Error('enough')

/** Distributes the bytes `[start, end)` of a response over the gaps that need them; bytes in between are skipped. */
export class Body implements BodyConsumer {
  #at: number
  readonly #end: number
  readonly #gaps: [number, number][]
  readonly #open: (offset: number, length: number) => RangeWriter
  readonly #breakOff: (error: Error) => void
  #writer: RangeWriter | undefined
  readonly #finishing: Promise<void>[] = []

  constructor(
    start: number,
    end: number,
    gaps: [number, number][],
    open: (offset: number, length: number) => RangeWriter,
    breakOff: (error: Error) => void
  ) {
    this.#at = start
    this.#end = end
    this.#gaps = [...gaps]
    this.#open = open
    this.#breakOff = breakOff
  }

  onData(chunk: Uint8Array): void {
    if (this.#at + chunk.length > this.#end) return this.#breakOff(new Error('the body is longer than its head said'))
    let rest = chunk
    while (rest.length > 0) {
      const gap = this.#gaps[0]
      if (!gap) return this.#breakOff(ENOUGH)
      const [from, to] = gap
      if (this.#at < from) {
        const skipped = Math.min(rest.length, from - this.#at)
        this.#at += skipped
        rest = rest.subarray(skipped)
        continue
      }
      this.#writer ??= this.#open(this.#at, to - this.#at)
      const count = Math.min(rest.length, to - this.#at)
      this.#writer.push(count === rest.length ? rest : rest.subarray(0, count))
      this.#at += count
      rest = rest.subarray(count)
      if (this.#at === to) {
        this.#gaps.shift()
        const done = this.#writer.finish()
        done.catch(() => {})
        this.#finishing.push(done)
        this.#writer = undefined
      }
    }
  }

  /** True while a gap is unfilled. */
  missing(): boolean {
    return this.#gaps.length > 0
  }

  /** @throws SinkFailure */
  async finish(): Promise<void> {
    if (this.#writer) this.#finishing.push(this.#writer.finish())
    this.#writer = undefined
    const results = await Promise.allSettled(this.#finishing)
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }
}
