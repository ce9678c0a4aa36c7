import { ClientError } from '@svc/client'
import { CliError, usage } from '../errors.ts'
import type { Session } from '../session.ts'
import { asking, canAsk } from './question.ts'

/** An import with several possible meanings. */
export interface AmbiguousImport {
  /** The repository. */
  readonly what: string
  /** The command line without the repository, for examples. */
  readonly command: string
  /** The alternatives, in lower case if they are written so, in the order of the table's numbers. */
  readonly names: readonly string[]
  /** What an empty answer means. */
  readonly recommended?: string | undefined
  readonly table: readonly (readonly string[])[]
  readonly advice?: string | undefined
  /** The command that imports everything. */
  readonly all: string
  /** What the names are. Default: quants. */
  readonly kind?: string
  /** Default: the command with one of the names. */
  readonly example?: string
}

/**
 * Asks on a terminal which quants to import; undefined means all.
 * @throws CliError with exit code 2 if nobody can be asked, or nothing was chosen; 130 on Ctrl-C
 */
export async function chooseQuants(
  session: Session,
  { what, command, names, recommended, table, advice, all, kind = 'quants', ...given }: AmbiguousImport
): Promise<readonly string[] | undefined> {
  // the usual choice, and the default of runtimes that choose on their own
  const { example = `${command} ${what}:${names.includes('q4_k_m') ? 'q4_k_m' : names[0]}` } = given
  const several = `${what} has ${names.length} ${kind}`
  if (!session.json) session.terminal.stderr.table(table)
  if (!session.json && advice !== undefined) session.terminal.stderr.prose(advice)
  if (!canAsk(session))
    throw new CliError('usage', `${several}; name those that you want`, {
      candidates: session.json ? names : [],
      hint: `${example}, or ${all}`
    })
  return asking(session, async (ask) => {
    const enter = recommended === undefined ? '' : `; Enter for ${recommended}`
    let question = `${several}. Which? (numbers or names with commas, or all${enter}) `
    for (;;) {
      const answer = await ask(question)
      if (answer === '' && recommended !== undefined) return [recommended]
      if (answer === undefined || answer === '') throw usage('nothing was chosen, and nothing imported', example)
      if (answer.toLowerCase() === 'all') return undefined
      const words = answer.split(/[\s,]+/).filter((word) => word !== '')
      const meant = words.map((word) => nameMeant(word, names))
      const unclear = words.filter((_, i) => meant[i] === undefined)
      if (unclear.length === 0) return [...new Set(meant as string[])]
      question = `${unclear.join(', ')}: not there, or several match; the table has numbers and names. Which? `
    }
  })
}

/** Runs a request again with whole names, if some of its quants are unique prefixes of those that there are. */
export async function meaningQuants<B extends { readonly quants?: string[] }, T>(
  body: B,
  run: (body: B) => Promise<T>
): Promise<T> {
  try {
    return await run(body)
  } catch (error) {
    if (!(error instanceof ClientError) || error.code !== 'E_NO_MEMBER' || body.quants === undefined) throw error
    const { candidates } = error
    const meant = body.quants.map((typed) => nameMeant(typed, candidates))
    const isOther = meant.some((quant, i) => quant !== body.quants![i]!.toLowerCase())
    if (!isOther || meant.includes(undefined)) throw error
    return run({ ...body, quants: meant as string[] })
  }
}

/** The name as it was typed, ignoring case, or the only one that starts with it, or the one of that number. */
function nameMeant(word: string, names: readonly string[]): string | undefined {
  if (/^\d{1,3}$/.test(word)) return names[Number(word) - 1]
  const lower = word.toLowerCase()
  const begins = names.filter((name) => name.toLowerCase().startsWith(lower))
  return names.find((name) => name.toLowerCase() === lower) ?? (begins.length === 1 ? begins[0] : undefined)
}
