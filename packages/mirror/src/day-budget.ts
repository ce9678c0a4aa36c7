const DAY_MS = 24 * 3600 * 1000
/** Bytes spent within one of these count as spent at its start. */
const SLOT_MS = 60_000

/** Bytes that were spent on something. */
export interface Spending {
  /** Returns bytes that were not needed. After a day they no longer count anyway. */
  giveBack(bytes: number): void
}

/** Limits the bytes spent within any 24 hours. */
export class DayBudget {
  readonly #limitBytes: number
  readonly #nowMs: () => number
  /** By the number of the slot; at most one day's. */
  readonly #slots = new Map<number, number>()

  readonly #onSpent: (limitBytes: number) => void
  #toldSlot: number | undefined

  /** @param nowMs a monotonic clock. @param onSpent called when something is refused, at most once a minute */
  constructor(limitBytes: number, nowMs: () => number, onSpent: (limitBytes: number) => void = () => undefined) {
    this.#limitBytes = limitBytes
    this.#nowMs = nowMs
    this.#onSpent = onSpent
  }

  spentBytes(): number {
    const oldest = this.#slot() - DAY_MS / SLOT_MS
    let spent = 0
    for (const [slot, bytes] of this.#slots) {
      if (slot <= oldest) this.#slots.delete(slot)
      else spent += bytes
    }
    return spent
  }

  /** Whether nothing more may be spent. */
  isSpent(): boolean {
    return this.#refuses(1)
  }

  #refuses(bytes: number): boolean {
    if (this.spentBytes() + bytes <= this.#limitBytes) return false
    const slot = this.#slot()
    if (this.#toldSlot !== slot) this.#onSpent(this.#limitBytes)
    this.#toldSlot = slot
    return true
  }

  /** Spends bytes that are fetched already, even beyond the limit: their number was not known before. */
  spend(bytes: number): void {
    const slot = this.#slot()
    this.#slots.set(slot, (this.#slots.get(slot) ?? 0) + bytes)
  }

  /** @returns undefined, without spending anything, if that would exceed the limit */
  trySpend(bytes: number): Spending | undefined {
    if (this.#refuses(bytes)) return undefined
    const slot = this.#slot()
    this.spend(bytes)
    let leftBytes = bytes
    return {
      giveBack: (unneeded) => {
        const back = Math.max(0, Math.min(unneeded, leftBytes))
        leftBytes -= back
        const spent = this.#slots.get(slot)
        // it no longer counts a day later
        if (spent !== undefined) this.#slots.set(slot, spent - back)
      }
    }
  }

  #slot(): number {
    return Math.floor(this.#nowMs() / SLOT_MS)
  }
}
