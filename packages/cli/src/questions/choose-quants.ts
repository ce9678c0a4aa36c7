import { CliError, usage } from '../errors.ts'
import { printable } from '../printable.ts'
import type { Session } from '../session.ts'
import { asking, canAsk } from './question.ts'

/** An import with several possible meanings. */
export interface AmbiguousImport {
  /** The repository. */
  readonly what: string
  /** The command line without the repository, for examples. */
  readonly command: string
  /** The alternatives, in lower case if they are written so. */
  readonly names: readonly string[]
  readonly table: readonly string[]
  /** The command that imports everything. */
  readonly all: string
}

/**
 * Asks on a terminal which quants to import; undefined means all.
 * @throws CliError with exit code 2 if nobody can be asked, or nothing was chosen; 130 on Ctrl-C
 */
export async function chooseQuants(
  session: Session,
  { what, command, names, table, all }: AmbiguousImport
): Promise<readonly string[] | undefined> {
  // the usual choice, and the default of runtimes that choose on their own
  const example = `${command} ${what}:${names.includes('q4_k_m') ? 'q4_k_m' : names[0]}`
  const several = `${what} has ${names.length} quants`
  if (!session.json) for (const line of table) session.terminal.stderr.write(`${printable(line)}\n`)
  if (!canAsk(session))
    throw new CliError('usage', `${several}; name those that you want`, {
      candidates: session.json ? names : [],
      hint: `${example}, or ${all}`
    })
  return asking(session, async (ask) => {
    let question = `${several}. Which? (names with commas, or all) `
    for (;;) {
      const answer = await ask(question)
      if (answer === undefined || answer === '') throw usage('nothing was chosen, and nothing imported', example)
      if (answer.toLowerCase() === 'all') return undefined
      const words = answer.split(/[\s,]+/).filter((word) => word !== '')
      const meant = words.map((word) => nameMeant(word, names))
      const unclear = words.filter((_, i) => meant[i] === undefined)
      if (unclear.length === 0) return [...new Set(meant as string[])]
      question = `${unclear.join(', ')}: no such quant, or several match; the table has the names. Which? `
    }
  })
}

/** The name as it was typed, ignoring case, or the only one that starts with it. */
function nameMeant(word: string, names: readonly string[]): string | undefined {
  const lower = word.toLowerCase()
  const begins = names.filter((name) => name.toLowerCase().startsWith(lower))
  return names.find((name) => name.toLowerCase() === lower) ?? (begins.length === 1 ? begins[0] : undefined)
}
