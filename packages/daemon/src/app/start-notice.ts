import type { SwarmStatus } from '@svc/client/protocol'
import type { Log } from '../log.ts'
import { type RuntimeFacts, removeRuntimeFile, writeRuntimeFile } from './runtime-file.ts'

/** Readers take the file for a leftover when it has not been rewritten for some seconds. */
const REWRITE_MS = 500

/** What `runtime.json` says from when the root's lock is held until the socket answers (spec add.30). */
export type StartingFacts = Omit<RuntimeFacts, 'state'>

/**
 * Keeps telling clients, by `runtime.json`, that a daemon is starting, and how far it has come. A file that cannot be written is no reason
 * not to start.
 */
export class StartNotice {
  readonly #path: string
  readonly #facts: StartingFacts
  readonly #log: Log
  readonly #verifying: () => SwarmStatus['verifying']
  readonly #timer: NodeJS.Timeout
  #writing: Promise<void> | undefined

  constructor(path: string, facts: StartingFacts, log: Log, verifying: () => SwarmStatus['verifying']) {
    this.#path = path
    this.#facts = facts
    this.#log = log
    this.#verifying = verifying
    this.#write()
    this.#timer = setInterval(() => this.#write(), REWRITE_MS)
  }

  /** Resolves when nothing is written any more. */
  async end(): Promise<void> {
    clearInterval(this.#timer)
    await this.#writing
  }

  /** The start failed: takes the file away. */
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
