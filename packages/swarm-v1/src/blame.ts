/**
 * Who sent the blocks of a piece that turned out wrong. webtorrent only throws such a piece away and asks again, also the
 * same peer, for ever. A peer that sent a wrong piece alone is proven to lie; of several, each gets a strike, and the
 * third strike is too many.
 *
 * Invariant: contributors are kept only for pieces that are neither verified nor discarded.
 */
export class Blame {
  readonly #senders = new Map<number, Set<string>>()
  readonly #strikes = new Map<string, number>()
  readonly #banned = new Set<string>()

  sent(piece: number, address: string): void {
    const senders = this.#senders.get(piece)
    if (senders) senders.add(address)
    else this.#senders.set(piece, new Set([address]))
  }

  verified(piece: number): void {
    this.#senders.delete(piece)
  }

  /** The addresses that are banned because of this. */
  failed(piece: number): string[] {
    const senders = this.#senders.get(piece) ?? new Set<string>()
    this.#senders.delete(piece)
    const out: string[] = []
    for (const address of senders) {
      const strikes = (this.#strikes.get(address) ?? 0) + (senders.size === 1 ? MAX_STRIKES : 1)
      this.#strikes.set(address, strikes)
      if (strikes < MAX_STRIKES || this.#banned.has(address)) continue
      this.#banned.add(address)
      out.push(address)
    }
    return out
  }

  isBanned(address: string): boolean {
    return this.#banned.has(address)
  }
}

const MAX_STRIKES = 3
