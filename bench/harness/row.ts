import type { DaemonLauncher } from './daemon.ts'
import type { Plot } from './plot.ts'
import type { Profile } from './profile.ts'
import type { Scratch } from './scratch.ts'

/** What a row gets to work with. */
export interface Bench {
  readonly profile: Profile
  /** A fresh folder of this row, removed afterwards. */
  readonly scratch: Scratch
  readonly daemons: DaemonLauncher
  /** A curve of this run; written as `NAME.svg` where `--plots` names a folder. */
  plot(name: string, plot: Plot): void
  /** Progress for the person who waits, on stderr. */
  say(text: string): void
}

/** One line of the table. */
export interface Line {
  readonly what: string
  readonly ours: string
  readonly peer: string
  /** Ours against the peer's, larger is better; undefined for figures that stand alone. */
  readonly ratio?: number | undefined
  readonly target: string
  /** Undefined where the line has no target. */
  readonly met?: boolean | undefined
  readonly note?: string
}

export interface Row {
  readonly name: string
  readonly summary: string
  run(bench: Bench): Promise<readonly Line[]>
}
