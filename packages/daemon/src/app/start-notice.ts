import type { SwarmStatus } from '@svc/client/protocol'
import type { Clock, Timer } from '@svc/internal-clock'
import type { Log } from '../log.ts'
import { type RuntimeFacts, removeRuntimeFile, writeRuntimeFile } from './runtime-file.ts'

/** Readers consider the file stale when it has not been rewritten for some seconds. */
const REWRITE_MS = 500

/** The content of `runtime.json` from the time the root's lock is held until the socket responds (spec add.30). */
export type StartingFacts = Omit<RuntimeFacts, 'state'>

/**
 * Tells clients through `runtime.json` that a daemon is starting, and its progress. If the file cannot be written, the
 * start continues.
 */
export class StartNotice {
  readonly #path: string
  readonly #facts: StartingFacts
  readonly #log: Log
  readonly #verifying: () => SwarmStatus['verifying']
  readonly #timer: Timer
  #writing: Promise<void> | undefined

  constructor(
    path: string,
    facts: StartingFacts,
    { clock, log }: { readonly clock: Clock; readonly log: Log },
    verifying: () => SwarmStatus['verifying']
  ) {
    this.#path = path
    this.#facts = facts
    this.#log = log
    this.#verifying = verifying
    this.#write()
    this.#timer = clock.every(REWRITE_MS, () => this.#write())
  }

  /** Resolves when the last write has ended. */
  async end(): Promise<void> {
    this.#timer.cancel()
    await this.#writing
  }

  /** Removes the file after a failed start. */
  async withdraw(): Promise<void> {
    await this.end()
    await removeRuntimeFile(this.#path)
  }

  #write(): void {
    const verifying = this.#verifying()
    this.#writing ??= writeRuntimeFile(this.#path, {
      ...this.#facts,
      state: 'starting',
      ...(verifying !== undefined && { verifying })
    })
      .catch((error: unknown) => this.#log.debug({ err: error, path: this.#path }, 'runtime.json cannot be written'))
      .finally(() => (this.#writing = undefined))
  }
}
