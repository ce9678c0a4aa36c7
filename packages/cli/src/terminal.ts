import type { Readable, Writable } from 'node:stream'

/** Where output goes: whether it is a terminal, and how wide. */
export type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number }

/** The surroundings of one run of `svc`: those of the process, or those of a test. */
export interface Terminal {
  /** Where answers to questions come from; absent where nobody can be asked. */
  readonly stdin?: Readable & { readonly isTTY?: boolean }
  readonly stdout: Output
  readonly stderr: Output
  /** Relative paths to import are meant from here. */
  readonly cwd: string
  /** Of `TERM=dumb` and the socket's address; the commands about the installation read the rest. */
  readonly env: Readonly<Record<string, string | undefined>>
}
