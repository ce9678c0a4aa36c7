import type { Session } from './session.ts'

/** Whether somebody is there to be asked: a terminal on both sides, and no option that is for programs. */
export const canAsk = ({ json, quiet, terminal: { stdin, stderr } }: Session): boolean =>
  !json && !quiet && stdin?.isTTY === true && stderr.isTTY === true

/** The answer to a question on the terminal, without white space around it. Only where {@link canAsk}. */
export async function ask({ terminal, signal }: Session, question: string): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: terminal.stdin!, output: terminal.stderr, terminal: false })
  try {
    return (await lines.question(question, { signal })).trim()
  } finally {
    lines.close()
  }
}
