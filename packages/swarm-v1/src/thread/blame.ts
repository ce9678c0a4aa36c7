import { hash } from 'node:crypto'
import { BannedPeers, tryParseAddress } from '@svc/internal-net'

/** A block that a peer sent in one attempt at a piece. */
interface Sent {
  readonly offset: number
  readonly length: number
  readonly sender: string
  readonly digest: string
}

/** Keeps the latest attempts at a piece that keeps failing. */
const MAX_ATTEMPTS = 8
/** How long a turn at a piece that failed lasts at most, however the peer sends, and how long that peer then waits for the next. */
const MAX_TURN_MS = 60_000
const PASSED_MS = 10_000

interface Turn {
  owner: string | undefined
  /** When the owner last sent a block. */
  since: number
  begunMs: number
  /** Peers whose turn has passed, and when. */
  readonly passedMs: Map<string, number>
}

/**
 * Finds who sent bad blocks of a piece that failed its hash. webtorrent only discards such a piece and requests it
 * again, even from the same peers, for ever. A peer is banned on proof only: it sent a whole bad piece alone, or a
 * block that differs from that of the verified piece. So after a failure with several senders the piece is requested
 * from one peer at a time ({@link mayAsk}): either that peer is proven to send bad data, or the piece is right and
 * shows who did. Merely counting failures would also ban the honest peers beside a malicious one.
 *
 * Invariant: attempts are kept only for pieces that are neither verified nor abandoned; `#turns` holds the pieces that
 * failed once.
 */
export class Blame {
  readonly #attempts = new Map<number, Sent[][]>()
  readonly #turns = new Map<number, Turn>()
  readonly #liars = new Set<string>()
  readonly #banned = new BannedPeers()
  readonly #turnMs: number

  /** @param turnMs how long a peer that sends nothing keeps its turn at a piece that failed */
  constructor(turnMs = 5_000) {
    this.#turnMs = turnMs
  }

  /** Number of pieces that are requested from one peer at a time. */
  get suspects(): number {
    return this.#turns.size
  }

  /** Whether a block of this piece may be requested from `address` now. */
  mayAsk(piece: number, address: string, nowMs: number): boolean {
    const turn = this.#turns.get(piece)
    if (turn === undefined || turn.owner === address) return true
    const passedMs = turn.passedMs.get(address)
    if (passedMs !== undefined && nowMs - passedMs < PASSED_MS) return false
    return turn.owner === undefined || nowMs - turn.since >= this.#turnMs || nowMs - turn.begunMs >= MAX_TURN_MS
  }

  /** A block was requested: from now on this peer has the turn at a piece that failed. */
  asked(piece: number, address: string, nowMs: number): void {
    const turn = this.#turns.get(piece)
    if (turn === undefined || turn.owner === address) return
    if (turn.owner !== undefined) turn.passedMs.set(turn.owner, nowMs)
    turn.owner = address
    turn.since = nowMs
    turn.begunMs = nowMs
  }

  sent(piece: number, offset: number, block: Uint8Array, sender: string, nowMs: number): void {
    const attempts = this.#attempts.get(piece) ?? [[]]
    this.#attempts.set(piece, attempts)
    attempts.at(-1)!.push({ offset, length: block.length, sender, digest: hash('sha1', block) })
    const turn = this.#turns.get(piece)
    if (turn?.owner === sender) turn.since = nowMs
  }

  /** The piece is right: bans everyone who sent other bytes for it, now or before. @returns the banned addresses */
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

  /** The piece is wrong. @returns the banned addresses */
  failed(piece: number): string[] {
    const attempts = this.#attempts.get(piece) ?? []
    const senders = new Set(attempts.at(-1)?.map(({ sender }) => sender))
    this.#attempts.set(piece, [...attempts, []].slice(-MAX_ATTEMPTS))
    const passedMs = this.#turns.get(piece)?.passedMs ?? new Map<string, number>()
    this.#turns.set(piece, { owner: undefined, since: 0, begunMs: 0, passedMs })
    return senders.size === 1 ? this.#ban([...senders]) : []
  }

  /** The peer disconnected: others may take its turns. */
  left(address: string): void {
    for (const turn of this.#turns.values()) if (turn.owner === address) turn.owner = undefined
  }

  isBanned(address: string): boolean {
    if (this.#liars.has(address)) return true
    const parsed = tryParseAddress(address)
    return parsed !== undefined && this.#banned.isBanned(parsed)
  }

  #ban(liars: readonly string[]): string[] {
    const fresh = [...new Set(liars)].filter((address) => !this.#liars.has(address))
    for (const address of fresh) {
      this.#liars.add(address)
      const parsed = tryParseAddress(address)
      if (parsed !== undefined) this.#banned.ban(parsed, 0)
      this.left(address)
    }
    return fresh
  }
}
