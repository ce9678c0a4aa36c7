import { Gate } from '@svc/internal-concurrency'
import { HostShares } from '../http/host-shares.ts'

/**
 * Work that clients cause, a few at a time. The places of what waits are shared by host: while all are taken, the oldest of the host
 * with the most is refused for a host with fewer.
 */
export class HostQueue {
  readonly #gate: Gate
  readonly #waiting: HostShares<AbortController>
  readonly #refusal: () => Error

  /** @param refusal made for what is not done */
  constructor(atOnce: number, maxWaiting: number, refusal: () => Error) {
    this.#gate = new Gate(atOnce)
    this.#waiting = new HostShares(maxWaiting)
    this.#refusal = refusal
  }

  /** Does the work when its turn comes, for the client at IP address `host`. @throws the refusal, errors of `work` */
  async run<T>(host: string, work: () => Promise<T>): Promise<T> {
    const turn = new AbortController()
    const before = this.#gate.waiting
    const entering = this.#gate.enter(turn.signal)
    if (this.#gate.waiting > before) this.#waiting.add(host, turn)?.abort(this.#refusal())
    const release = await entering.finally(() => this.#waiting.delete(turn))
    try {
      return await work()
    } finally {
      release()
    }
  }
}
