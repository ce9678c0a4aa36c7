import { CliError } from '../errors.ts'
import type { Session } from '../session.ts'

/** Whether a person at a terminal can be asked. */
export const canAsk = ({ json, quiet, terminal: { stdin, stderr } }: Session): boolean =>
  !json && !quiet && stdin?.isTTY === true && stderr.isTerminal

/** Asks a question; undefined at the end of input (Ctrl-D). */
export type Ask = (question: string) => Promise<string | undefined>

/** Asks on the terminal, one line per answer, if {@link canAsk}. @throws CliError with exit code 130 on Ctrl-C */
export async function asking<T>({ terminal, signal }: Session, work: (ask: Ask) => Promise<T>): Promise<T> {
  const { createInterface } = await import('node:readline')
  // an input that has ended does not say so again
  const isOver = terminal.stdin!.readableEnded
  const lines = createInterface({ input: terminal.stdin!, terminal: false, signal })
  const answers = lines[Symbol.asyncIterator]()
  try {
    return await work(async (question) => {
      terminal.stderr.question(question)
      const answer = isOver ? undefined : await answers.next()
      if (!signal.aborted && answer !== undefined && answer.done !== true) return answer.value.trim()
      // the cursor is still on the question's line
      terminal.stderr.line()
      if (signal.aborted) throw new CliError('interrupted', 'interrupted; nothing was done', { code: 'E_INTERRUPTED' })
      return undefined
    })
  } finally {
    lines.close()
  }
}

/** Asks for consent; no answer means no. @throws as {@link asking} */
export const saysYes = async (session: Session, question: string): Promise<boolean> =>
  /^y(es)?$/i.test((await asking(session, (ask) => ask(`${question}(y/N) `))) ?? '')
