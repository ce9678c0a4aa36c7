import { ClientError, type NamedModel } from '@svc/client'
import { parseRef } from '@svc/ref'
import { usage } from '../errors.ts'
import { asRepo, canonicalRef, fullName, importName } from '../models/reference.ts'
import { requireConsent } from '../questions/replacing.ts'
import type { Session } from '../session.ts'

export interface RenameOptions {
  readonly replace?: boolean
}

/** `svc mv REF NEW`: a repository with its tags, or one quant. */
export const mv = (session: Session, typed: string, to: string, options: RenameOptions): Promise<void> =>
  rename(session, typed, to, options, true)

/** `svc cp REF NEW`: a second name, which takes no space. */
export const cp = (session: Session, typed: string, to: string, options: RenameOptions): Promise<void> =>
  rename(session, typed, to, options, false)

async function rename(
  session: Session,
  typed: string,
  to: string,
  options: RenameOptions,
  move: boolean
): Promise<void> {
  const full = await fullName(session, typed)
  const repo = asRepo(full)
  const { ns, name, quant, tag } =
    repo === undefined ? await resolved(session, full) : { ...inParts(repo), quant: undefined, tag: undefined }
  if (tag !== undefined || (repo === undefined && quant === undefined))
    throw usage(`"${typed}" is one version of a model`, `svc tag ${ns}/${name}:${tag ?? 'TAG'} gives versions names`)
  const as = newName(to, ns, quant)
  const body = { from: quant === undefined ? `${ns}/${name}` : `${ns}/${name}:${quant}`, as, move }
  const done = await session.client
    .giveName({ ...body, replace: options.replace === true })
    .catch(async (error: unknown): Promise<NamedModel> => {
      const isTaken = error instanceof ClientError && error.code === 'E_NOT_IMPORTABLE' && error.candidates.length > 0
      if (!isTaken) throw error
      await requireConsent(session, error.candidates)
      return session.client.giveName({ ...body, replace: true })
    })
  if (session.json) return session.document({ from: body.from, ...done, moved: move })
  for (const each of done.quants) session.print(`${done.as}:${each}`)
  const tags =
    done.tags.length === 0 ? '' : `, with its ${done.tags.length === 1 ? 'tag' : 'tags'} ${done.tags.join(', ')}`
  session.note(
    move
      ? `${body.from} has the name ${done.as} now${tags}`
      : `${done.as} is a second name of ${body.from}${tags}; it takes no space`
  )
}

function inParts(repo: string): { readonly ns: string; readonly name: string } {
  const [ns = '', name = ''] = repo.split('/')
  return { ns, name }
}

/** With the whole quant, where a prefix was typed. */
async function resolved(session: Session, full: string) {
  const canonical = await canonicalRef(session, full)
  const ref = parseRef(canonical)
  if (ref.quant === undefined || ref.tag !== undefined) return ref
  return { ...ref, quant: (await session.client.resolve(canonical)).quant }
}

/** A lone name stays in the namespace; a quant may be repeated. @throws CliError, RefError */
function newName(typed: string, ns: string, quant: string | undefined): string {
  const [, repo = '', selector] = /^(?:svc:\/\/\/)?([^:]+)(?::(.*))?$/.exec(typed) ?? [typed, typed]
  if (selector !== undefined && selector.toLowerCase() !== quant)
    throw usage(`a quant keeps its name: ${typed} would be another`, `name the model alone: ${repo}`)
  return importName(repo.includes('/') ? repo : `${ns}/${repo}`, repo)
}
