import { namespaceOf, suggestName, taggedName } from './model-names.ts'

/** Ollama's own registry, which a name without a host means. */
export const OLLAMA_HOST = 'registry.ollama.ai'
const LIBRARY = 'library'

/** A model as Ollama names it: `[host/][ns/]model[:tag]`, with what it leaves out filled in. */
export interface OllamaName {
  readonly host: string
  readonly ns: string
  readonly model: string
  readonly tag: string
}

/** Whether a name is of Ollama's own library, such as `qwen3:8b`. */
export const isOllamaLibrary = ({ host, ns }: OllamaName): boolean => host === OLLAMA_HOST && ns === LIBRARY

/** What a namespace and a name are derived from. */
export const wordsOf = (name: OllamaName): { readonly ns: string; readonly name: string } => ({
  ns: isOllamaLibrary(name) ? 'ollama' : namespaceOf([name.host, name.ns]),
  name: taggedName(name.model, name.tag)
})

const PART = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,79}$/

/**
 * Reads a name as `ollama pull` does: the registry is Ollama's, the namespace its library and the tag `latest` unless
 * they are named.
 * @returns undefined for text that is no name of a model
 */
export function tryParseOllamaName(text: string): OllamaName | undefined {
  const bare = text.replace(/^(?:https?|ollama):\/\//, '')
  const colon = bare.lastIndexOf(':')
  const hasTag = colon > bare.lastIndexOf('/')
  const words = (hasTag ? bare.slice(0, colon) : bare).split('/')
  const [model, ns = LIBRARY, host = OLLAMA_HOST, ...more] = words.toReversed()
  const tag = hasTag ? bare.slice(colon + 1) : 'latest'
  if (more.length > 0 || host === '' || ![model, ns, tag].every((part) => PART.test(part ?? ''))) return undefined
  return { host, ns, model: model!, tag }
}

/** The `ns/name` under which svc keeps a model of this name unless told otherwise. */
export function suggestedOllamaName(name: OllamaName): string {
  const words = wordsOf(name)
  const suggested = suggestName(words.ns, words.name, 'ollama')
  return `${suggested.ns}/${suggested.name}`
}
