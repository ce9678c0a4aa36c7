import type { Job } from '@svc/client'
import { CliError } from '../errors.ts'
import type { Session } from '../session.ts'
import { canAsk, saysYes } from './question.ts'

/** What a request adds so that the daemon replaces no other artifact (spec add.45), or evicts for room. */
export type ReplaceField = { readonly replace?: false; readonly evict?: true }

/**
 * Runs an import. It replaces another artifact only if `replace` says so, or a person at the terminal; then the second
 * attempt uses the bytes of the first. @throws CliError `E_NAME_TAKEN`; whatever `run` throws
 */
export async function replacingOnlyIfTold<T>(
  session: Session,
  { replace, as }: { readonly replace?: boolean | undefined; readonly as?: string | undefined },
  run: (field: ReplaceField) => Promise<T>
): Promise<T> {
  if (replace === true) return run({})
  try {
    return await run({ replace: false })
  } catch (error) {
    const taken = takenRefs(error)
    if (taken === undefined) throw error
    await requireConsent(session, taken, as)
    return run({})
  }
}

/** Asks whether another artifact may take these references. @throws CliError `E_NAME_TAKEN` */
export async function requireConsent(session: Session, refs: readonly string[], as?: string): Promise<void> {
  const what = `${refs.join(', ')} ${refs.length === 1 ? 'is another artifact' : 'are other artifacts'} here`
  if (canAsk(session) && (await saysYes(session, `${what}. Replace ${refs.length === 1 ? 'it' : 'them'}? `))) return
  const other = as === undefined ? 'another name' : `a name other than ${as}`
  throw new CliError('usage', `${what}; nothing was replaced`, {
    code: 'E_NAME_TAKEN',
    candidates: refs,
    hint: `to keep both, import it under ${other} with --as; to replace, use --replace`
  })
}

/** The references of the other artifacts that an import with {@link ReplaceField} would have replaced. */
export function takenRefs(error: unknown): readonly string[] | undefined {
  if (!(error instanceof CliError) || error.code !== 'E_NOT_IMPORTABLE') return undefined
  const { candidates } = error
  return candidates.length > 0 && candidates.every((text) => TAKEN.test(text)) ? candidates : undefined
}

/** `ns/name:quant`; the other candidates of that code are names of files. */
const TAKEN = /^[a-z0-9][a-z0-9._-]*\/[a-z0-9][a-z0-9._-]*:[a-z0-9._-]+$/

export function tellReplaced(session: Session, { as, result }: Pick<Job, 'as' | 'result'>): void {
  for (const { quant, manifest } of result?.replaced ?? [])
    session.note(
      result?.before !== undefined
        ? `${as}:${quant} is now ${as}:${result.before}+${quant}, until svc gc --older-than 0`
        : `${as}:${quant} was ${manifest} before; svc gc removes what nothing else needs of it`
    )
}
