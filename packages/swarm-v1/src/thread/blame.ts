import { hash } from 'node:crypto'

/** A block that a peer sent in one try to get a piece. */
interface Sent {
  readonly offset: number
  readonly length: number
  readonly sender: string
  readonly digest: string
}

/** Tries that are remembered of a piece that goes on failing; the latest ones. */
const MAX_ATTEMPTS = 8

/**
 * Who sent the wrong blocks of a piece that turned out wrong. webtorrent only throws such a piece away and asks again, also the same
 * peers, for ever. A peer is banned on proof only: it sent a wrong piece alone, or a block that differs from that of the
 * verified piece. So after a failure with several senders the piece is asked of one peer at a time ({@link mayAsk}): either
 * that one is proven to lie, or the piece is right and shows who did. Counting failures instead would ban the honest peer
 * beside a liar as well.
 *
 * Invariant: attempts are kept only for pieces that are neither verified nor given up; `#turns` has the pieces that failed once.
 */
export class Blame {
  readonly #attempts = new Map<number, Sent[][]>()
  readonly #turns = new Map<number, { owner: string | undefined; since: number }>()
  readonly #banned = new Set<string>()
  readonly #turnMs: number

  /** @param turnMs how long a peer that sends nothing keeps the turn at a piece that failed */
  constructor(turnMs = 5_000) {
    this.#turnMs = turnMs
  }

  /** Pieces that are asked of one peer at a time. */
  get suspects(): number {
    return this.#turns.size
  }

  /** Whether `address` may be asked for a block of this piece now. */
  mayAsk(piece: number, address: string, nowMs: number): boolean {
    const turn = this.#turns.get(piece)
    if (turn?.owner === undefined || turn.owner === address) return true
    return nowMs - turn.since >= this.#turnMs
  }

  /** It was asked: from now on it has the turn at a piece that failed. */
  asked(piece: number, address: string, nowMs: number): void {
    const turn = this.#turns.get(piece)
    if (turn === undefined || turn.owner === address) return
    turn.owner = address
    turn.since = nowMs
  }

  /** A block that was asked for has come. */
  sent(piece: number, offset: number, block: Uint8Array, sender: string, nowMs: number): void {
    const attempts = this.#attempts.get(piece) ?? [[]]
    this.#attempts.set(piece, attempts)
    attempts.at(-1)!.push({ offset, length: block.length, sender, digest: hash('sha1', block) })
    const turn = this.#turns.get(piece)
    if (turn?.owner === sender) turn.since = nowMs
  }

  /** The piece is right: whoever sent other bytes for it, now or before, is banned. @returns whom this bans. */
  verified(piece: number, bytes: Uint8Array): string[] {
    const attempts = this.#attempts.get(piece) ?? []
    this.#attempts.delete(piece)
    this.#turns.delete(piece)
    if (attempts.length < 2) return []
    const liars = attempts
      .flat()
      .filter(({ offset, length, digest }) => hash('sha1', bytes.subarray(offset, offset + length)) !== digest)
    return this.#ban(liars.map(({ sender }) => sender))
  }

  /** The piece is wrong. @returns whom this bans. */
  failed(piece: number): string[] {
    const attempts = this.#attempts.get(piece) ?? []
    const senders = new Set(attempts.at(-1)?.map(({ sender }) => sender))
    this.#attempts.set(piece, [...attempts, []].slice(-MAX_ATTEMPTS))
    this.#turns.set(piece, { owner: undefined, since: 0 })
    return senders.size === 1 ? this.#ban([...senders]) : []
  }

  /** The peer is gone: others may have its turns. */
  left(address: string): void {
    for (const turn of this.#turns.values()) if (turn.owner === address) turn.owner = undefined
  }

  isBanned(address: string): boolean {
    return this.#banned.has(address)
  }

  #ban(liars: readonly string[]): string[] {
    const fresh = [...new Set(liars)].filter((address) => !this.#banned.has(address))
    for (const address of fresh) {
      this.#banned.add(address)
      this.left(address)
    }
    return fresh
  }
}
