import type { Readable } from 'node:stream'
import type { Clock } from '@svc/internal-clock'
import type { Output } from '@svc/internal-terminal'

/** The environment of one run of `svc`: that of the process, or that of a test. */
export interface Terminal {
  /** The input for answers to questions; absent without a terminal. */
  readonly stdin?: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  /** Relative paths of imports are resolved against this. */
  readonly cwd: string
  /** For `TERM=dumb` and the socket's path; the commands about the installation read the rest. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** Default: the clock of this process. */
  readonly clock?: Clock
}
