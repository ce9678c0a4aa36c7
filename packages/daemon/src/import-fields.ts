import { ClassifyError, globTest, RAW } from '@svc/classify'
import type { ImportHfBody, ImportLocalBody } from '@svc/client/protocol'
import type { ImportSelection, MayReplace } from '@svc/library/parts'
import { isReservedNamespace, parseRepoId, type RepoId, tryParseRepoId } from '@svc/ref'
import { DaemonError } from './errors.ts'

type SelectionBody = Pick<
  ImportLocalBody,
  'names' | 'quants' | 'files' | 'aux' | 'private' | 'replace' | 'evict' | 'malformed'
> &
  Pick<ImportHfBody, 'keepBefore' | 'recognise' | 'allowPickle'>

/**
 * The selection in a request body that matches its schema. Normalized names differ from the publisher's, so globs ignore
 * case with them. @throws DaemonError `E_BAD_REQUEST` naming the field
 */
export function importSelectionOf(body: SelectionBody, privateByDefault = false): ImportSelection {
  const { names, files, aux } = body
  if (aux?.length === 0)
    throw new DaemonError('E_BAD_REQUEST', 'the field "aux" is empty; "none" leaves all of them out')
  const anyCase = names === 'normalized'
  const opaque = opaqueOf(body)
  const quants = quantsOf(body)
  return {
    normalizedNames: anyCase && opaque === undefined,
    opaque,
    quants,
    files: files && testOf(files, anyCase),
    aux: aux === 'all' ? undefined : aux,
    private: body.private ?? privateByDefault,
    mayReplace: mayReplaceOf(body),
    keepBefore: body.keepBefore ?? false,
    refusesMalformed: body.malformed === 'refuse',
    choice: {
      ...(anyCase && { names }),
      ...(quants && { quants }),
      ...(files && { files }),
      ...(aux !== undefined && aux !== 'all' && { aux }),
      ...(opaque && { recognise: 'opaque', ...(opaque.allowsPickles && { allowPickle: true }) })
    },
    mayEvict: body.evict ?? false
  }
}

/** Of a body whose files are taken as they are (spec rec.32, rec.33). */
export const opaqueOf = ({
  recognise,
  allowPickle = false
}: Pick<ImportHfBody, 'recognise' | 'allowPickle'>): ImportSelection['opaque'] =>
  recognise === 'opaque' ? { allowsPickles: allowPickle } : undefined

function quantsOf({ quants, recognise }: SelectionBody): readonly string[] | undefined {
  if (quants?.length === 0) throw new DaemonError('E_BAD_REQUEST', 'the field "quants" is empty')
  if (recognise !== 'opaque') return quants
  if (quants?.some((quant) => quant.toLowerCase() !== RAW)) {
    const what = 'files that are imported as they are have the quant "raw"; choose with "files"'
    throw new DaemonError('E_BAD_REQUEST', `the field "quants": ${what}`)
  }
  return undefined
}

/** The field `replace` of a request (spec add.45). */
export const mayReplaceOf = ({ replace }: Pick<ImportLocalBody, 'replace'>): MayReplace =>
  replace === false ? 'same-repository' : true

function testOf(files: readonly string[], anyCase: boolean): (name: string) => boolean {
  if (files.length === 0) throw new DaemonError('E_BAD_REQUEST', 'the field "files" is empty')
  try {
    return globTest(files, anyCase)
  } catch (cause) {
    if (!(cause instanceof ClassifyError)) throw cause
    throw new DaemonError('E_BAD_REQUEST', `the field "files": ${cause.message}`, { cause })
  }
}

/**
 * The repository to import into: `as`, else the name at the source in lower case, if that is a valid name here.
 * @throws DaemonError `E_BAD_REQUEST` naming the field
 */
export function targetFor({ repo, as }: { readonly repo: string; readonly as?: string | undefined }): RepoId {
  if (as !== undefined) return importTarget(as, 'as')
  const shown = `the field "repo": ${JSON.stringify(repo.slice(0, 200))}`
  const target = tryParseRepoId(repo.toLowerCase())
  if (target === undefined) {
    const rule = 'both parts begin with a letter or digit, and have at most 64 and 128 characters'
    throw new DaemonError('E_BAD_REQUEST', `${shown} cannot be a name here; ${rule}; set "as" to another one`)
  }
  if (!isReservedNamespace(target.ns)) return target
  throw new DaemonError('E_BAD_REQUEST', `${shown} is in a reserved namespace; set "as" to the name to keep it under`)
}

/** The repository `ns/name` to import into, from a request. @throws DaemonError `E_BAD_REQUEST` naming the field */
export function importTarget(text: string, field: string): RepoId {
  let repo: RepoId
  try {
    repo = parseRepoId(text)
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', `the field "${field}": ${(cause as Error).message}`, { cause })
  }
  if (!isReservedNamespace(repo.ns)) return repo
  throw new DaemonError(
    'E_BAD_REQUEST',
    `the field "${field}": the namespace "${repo.ns}" is reserved; choose another one`
  )
}
