import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '@svc/internal-clock'

/** How coarse the times of files are: of two changes within this the second cannot be told from the first. */
const TICK_MS = 20

/**
 * Numbers the changes of records that another process makes. A record is replaced, which changes the time of its folder: one look at
 * the folders tells whether anything is new.
 */
export class ChangesElsewhere {
  readonly #folders: { readonly artifacts: string; readonly repos: string }
  readonly #clock: Pick<Clock, 'now'>
  #seen = ''
  /** Whether a later change cannot have the same time. */
  #isSettled = false
  #revision = 0

  constructor(root: string, clock: Pick<Clock, 'now'>) {
    this.#folders = { artifacts: join(root, 'state/artifacts'), repos: join(root, 'state/repos') }
    this.#clock = clock
  }

  /** Another number than before if something may have changed. */
  get revision(): number {
    const { artifacts, repos } = this.#folders
    const namespaces = readdirSync(repos, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const paths = [artifacts, repos, ...namespaces.map(({ name }) => join(repos, name))]
    const stats = paths.map((path) => statSync(path, { throwIfNoEntry: false }))
    const seen = stats.map((stat) => `${stat?.ino} ${stat?.mtimeMs} ${stat?.ctimeMs}`).join()
    const isSettled = stats.every((stat) => this.#clock.now() - (stat?.mtimeMs ?? 0) > TICK_MS)
    if (seen !== this.#seen || (isSettled && !this.#isSettled)) this.#revision++
    this.#seen = seen
    this.#isSettled = isSettled
    return this.#revision
  }
}
