import type { DaemonLauncher } from './daemon.ts'
import type { Plot } from './plot.ts'
import type { Profile } from './profile.ts'
import type { Scratch } from './scratch.ts'

/** The context passed to each row. */
export interface Bench {
  readonly profile: Profile
  /** A fresh temporary folder, removed afterwards. */
  readonly scratch: Scratch
  readonly daemons: DaemonLauncher
  /** Writes a plot as `NAME.svg` if `--plots` names a folder. */
  plot(name: string, plot: Plot): void
  /** Reports progress on stderr. */
  say(text: string): void
}

/** One line of the table. */
export interface Line {
  readonly what: string
  readonly ours: string
  readonly peer: string
  /** Our result relative to the competitor's, larger is better; undefined if there is none to compare with. */
  readonly ratio?: number | undefined
  readonly target: string
  /** Undefined if the line has no target. */
  readonly met?: boolean | undefined
  readonly note?: string
}

export interface Row {
  readonly name: string
  readonly summary: string
  run(bench: Bench): Promise<readonly Line[]>
}
