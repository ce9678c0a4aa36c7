import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '@svc/internal-clock'

/** How coarse the times of files are: of two changes within this the second cannot be told from the first. */
const TICK_MS = 20
/** Looking takes at most this part of the time, however many namespaces there are and whoever asks how often. */
const SHARE = 1 / 10
/** What was seen is taken to be so for this long at least, and at most: a change of who may have a model may wait for it. */
const FRESH_MS = 5
const MAX_FRESH_MS = 250

/**
 * Numbers the changes of records that another process makes. A record is replaced, which changes the time of its folder: one look at
 * the folders tells whether anything is new.
 */
export class ChangesElsewhere {
  readonly #folders: { readonly artifacts: string; readonly repos: string }
  readonly #clock: Pick<Clock, 'now' | 'monotonic'>
  #seen = ''
  /** Whether a later change cannot have the same time. */
  #isSettled = false
  #revision = 0
  #freshUntilMs = Number.NEGATIVE_INFINITY

  constructor(root: string, clock: Pick<Clock, 'now' | 'monotonic'>) {
    this.#folders = { artifacts: join(root, 'state/artifacts'), repos: join(root, 'state/repos') }
    this.#clock = clock
  }

  /** Another number than before if something may have changed, up to a quarter of a second ago; also when nothing can be read any more. */
  get revision(): number {
    const begunMs = this.#clock.monotonic()
    if (begunMs < this.#freshUntilMs) return this.#revision
    const { seen, isSettled } = this.#look()
    if (seen !== this.#seen || (isSettled && !this.#isSettled)) this.#revision++
    this.#seen = seen
    this.#isSettled = isSettled
    const endMs = this.#clock.monotonic()
    this.#freshUntilMs = endMs + Math.min(Math.max((endMs - begunMs) / SHARE, FRESH_MS), MAX_FRESH_MS)
    return this.#revision
  }

  #look(): { readonly seen: string; readonly isSettled: boolean } {
    const { artifacts, repos } = this.#folders
    try {
      const namespaces = readdirSync(repos, { withFileTypes: true }).filter((entry) => entry.isDirectory())
      const paths = [artifacts, repos, ...namespaces.map(({ name }) => join(repos, name))]
      const stats = paths.map((path) => statSync(path, { throwIfNoEntry: false }))
      return {
        seen: stats.map((stat) => `${stat?.ino} ${stat?.mtimeMs} ${stat?.ctimeMs}`).join(),
        isSettled: stats.every((stat) => this.#clock.now() - (stat?.mtimeMs ?? 0) > TICK_MS)
      }
    } catch {
      // its disk is away: what is read next says so
      return { seen: 'unreadable', isSettled: false }
    }
  }
}
