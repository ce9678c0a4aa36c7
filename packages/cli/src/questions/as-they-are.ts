import { ClientError, type ImportHfBody } from '@svc/client'
import { CliError } from '../errors.ts'
import { exitOf } from '../exit-codes.ts'
import type { Session } from '../session.ts'
import { canAsk, saysYes } from './question.ts'

/** How files that no row of the table takes are imported, as a request says it. */
export type OpaqueField = Pick<ImportHfBody, 'recognise' | 'allowPickle'>

export interface OpaqueOptions {
  /** Imports every file as it is. */
  readonly opaque?: boolean
  readonly allowPickle?: boolean
}

const opaqueOf = ({ opaque, allowPickle }: OpaqueOptions): OpaqueField => ({
  ...(opaque === true && { recognise: 'opaque' as const }),
  ...(opaque === true && allowPickle === true && { allowPickle: true })
})

/** What an import needs its owner's word for, by the word among the candidates of its refusal. */
const OFFERS = [
  {
    word: 'opaque',
    field: { recognise: 'opaque' },
    question: 'Import every file as it is?',
    hint: '--opaque imports every file as it is; --file GLOB chooses among them'
  },
  {
    word: 'pickle',
    field: { recognise: 'opaque', allowPickle: true },
    question: 'Import them all the same?',
    hint: '--allow-pickle imports them all the same; --file GLOB chooses other files'
  }
] as const

/**
 * Runs an import. Where it is refused because no row takes its files, or because there are pickles, a person at the terminal may
 * take them all the same. @throws CliError with what to type; whatever `run` throws
 */
export async function takingAsTheyAre<T>(
  session: Session,
  options: OpaqueOptions,
  run: (field: OpaqueField) => Promise<T>
): Promise<T> {
  let field = opaqueOf(options)
  for (;;) {
    try {
      return await run(field)
    } catch (error) {
      const offer = offerIn(error)
      if (offer === undefined) throw error
      const { code, message, candidates } = error as CliError | ClientError
      // the field of the request is an option here
      const said = message.replace(/; "(?:recognise|allowPickle)"[^;]*$/, '')
      if (canAsk(session) && (await saysYes(session, `${said}. ${offer.question} `))) field = offer.field
      else throw new CliError(exitOf(code), said, { code, candidates, hint: offer.hint, cause: error })
    }
  }
}

function offerIn(error: unknown): (typeof OFFERS)[number] | undefined {
  if (!(error instanceof CliError || error instanceof ClientError) || error.code !== 'E_NOT_IMPORTABLE')
    return undefined
  const [only, ...more] = error.candidates
  return more.length > 0 ? undefined : OFFERS.find(({ word }) => word === only)
}
