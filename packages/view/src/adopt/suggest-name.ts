import { isName, isNamespace, isReservedNamespace } from '@svc/ref'

const MAX_NAMESPACE_CHARS = 64
const MAX_NAME_CHARS = 128

const fit = (text: string, maxChars: number): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, maxChars)
    .replace(/[-._]+$/, '')

/**
 * A valid `ns/name` derived from a tool's own name: lower-cased, with dashes for other characters. A namespace that is
 * reserved or empty is replaced by the tool's.
 */
export function suggestName(ns: string, name: string, tool: string): { readonly ns: string; readonly name: string } {
  const namespace = fit(ns, MAX_NAMESPACE_CHARS)
  const fitting = fit(name, MAX_NAME_CHARS)
  return {
    ns: isNamespace(namespace) && !isReservedNamespace(namespace) ? namespace : tool,
    name: isName(fitting) ? fitting : 'model'
  }
}
