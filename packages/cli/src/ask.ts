import type { Session } from './session.ts'

/** Whether a person can be asked: stdin and stderr are terminals, and no option for scripts is set. */
export const canAsk = ({ json, quiet, terminal: { stdin, stderr } }: Session): boolean =>
  !json && !quiet && stdin?.isTTY === true && stderr.isTTY === true

/** Asks a question on the terminal; returns the trimmed answer. Requires {@link canAsk}. */
export async function ask({ terminal, signal }: Session, question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: terminal.stdin!, output: terminal.stderr, terminal: false })
  try {
    return (await lines.question(question, { signal })).trim()
  } finally {
    lines.close()
  }
}
