import { RefError, tried } from './errors.ts'
import { foldAscii } from './fold.ts'
import { assertLength, quote } from './length.ts'
import type { RepoId } from './repo.ts'

const NAMESPACE = /^[a-z0-9][a-z0-9._-]{0,63}$/
const NAME = /^[a-z0-9][a-z0-9._-]{0,127}$/

/** True for a canonical namespace: 1 to 64 of `a-z 0-9 . _ -`, the first a letter or digit (spec ref.2). */
export const isNamespace = (text: string): boolean => NAMESPACE.test(text)

/** True for a canonical name: 1 to 128 of `a-z 0-9 . _ -`, the first a letter or digit (spec ref.2). */
export const isName = (text: string): boolean => NAME.test(text)

/** Namespaces that parse, but that nothing may be imported into (spec ref.12). */
const RESERVED_NAMESPACES: readonly string[] = ['library', 'svc']

/** True when `ns`, in any case, is reserved. */
export const isReservedNamespace = (ns: string): boolean => RESERVED_NAMESPACES.includes(foldAscii(ns))

/** @throws RefError reason `namespace` or `name`. Both must be lower-cased already. */
export function assertRepoId(ns: string, name: string): RepoId {
  if (!isNamespace(ns)) {
    throw new RefError(
      'namespace',
      ns === ''
        ? 'the namespace is empty; write svc:///ns/name:quant'
        : `bad namespace ${quote(ns)}: 1 to 64 of a-z 0-9 . _ - beginning with a letter or digit`
    )
  }
  if (!isName(name)) {
    throw new RefError(
      'name',
      name === ''
        ? `the name after ${quote(ns)} is missing; write svc:///${ns}/name:quant`
        : `bad name ${quote(name)}: 1 to 128 of a-z 0-9 . _ - beginning with a letter or digit`
    )
  }
  return { ns, name }
}

/**
 * Reads `ns/name`, as in the `as` of an import. Upper case is refused, and the message names the lower-case spelling;
 * with `foldCase` it is lower-cased instead (hub repositories are stored under their lower-cased id, spec hub.2).
 * @throws RefError `E_LENGTH`, or `E_PARSE` with reason `namespace` or `name`.
 */
export function parseRepoId(text: string, options: { readonly foldCase?: boolean } = {}): RepoId {
  assertLength(text)
  const folded = foldAscii(text)
  const slash = folded.indexOf('/')
  if (slash < 0) throw new RefError('name', `${quote(text)} is not of the form ns/name: exactly one "/" is needed`)
  const repo = assertRepoId(folded.slice(0, slash), folded.slice(slash + 1))
  if (folded !== text && options.foldCase !== true) {
    const reason = isNamespace(text.slice(0, slash)) ? 'name' : 'namespace'
    throw new RefError(reason, `${quote(text)} has upper-case letters; write ${quote(folded)}`, { suggestion: folded })
  }
  return repo
}

/** Like {@link parseRepoId}, or undefined. */
export const tryParseRepoId = (text: string, options?: { readonly foldCase?: boolean }): RepoId | undefined =>
  tried(() => parseRepoId(text, options))

/** Inverts {@link parseRepoId}. @throws RefError when a part is not canonical. */
export function formatRepoId(repo: RepoId): string {
  const { ns, name } = assertRepoId(repo.ns, repo.name)
  return `${ns}/${name}`
}
