import { CliError } from '../errors.ts'
import type { Session } from '../session.ts'
import { canAsk, saysYes } from './question.ts'

/** What a request adds if it may evict models that can be fetched again. */
export type EvictField = { readonly evict?: true }

export const evictField = ({ evict }: { readonly evict?: boolean | undefined }): EvictField =>
  evict === true ? { evict } : {}

/**
 * Runs something that may not fit. Evicts models for it only if `evict` says so, or a person at the terminal.
 * @throws whatever `run` throws
 */
export async function makingRoom<T>(
  session: Session,
  options: { readonly evict?: boolean | undefined },
  run: (field: EvictField) => Promise<T>
): Promise<T> {
  try {
    return await run(evictField(options))
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'E_NO_SPACE' || error.candidates.length === 0) throw error
    const question = `There is not enough space. Evict ${error.candidates.join(', ')}? `
    if (options.evict === true || !canAsk(session) || !(await saysYes(session, question))) throw error
    return run({ evict: true })
  }
}
