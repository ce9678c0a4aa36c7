import { isName, isNamespace, isReservedNamespace } from '@svc/ref'

const SHARD = /[-_]\d{5,6}[-_]of[-_]\d{5,6}$/
const QUANT = /[-._](?:ud-)?(?:i?q|tq|bf|f|fp|mx)\d[a-z0-9_]*$/i

/** A model's name with its tag, without a quant; the tag `latest` says nothing. */
export function taggedName(name: string, tag: string): string {
  const version = `-${tag}`.replace(QUANT, '')
  return tag === '' || tag === 'latest' || version === '' ? name : `${name}${version}`
}

/** The name of a weights file without extension, shard and quant: the common part of the files of one model. */
export function modelBase(file: string): string {
  const stem = file.slice(file.lastIndexOf('/') + 1).replace(/\.(?:gguf|safetensors)$/i, '')
  const base = stem
    .replace(/^mmproj[-_.]/i, '')
    .replace(SHARD, '')
    .replace(QUANT, '')
  return base === '' ? stem : base
}

const MAX_NAMESPACE_CHARS = 64
const MAX_NAME_CHARS = 128

const fit = (text: string, maxChars: number): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, maxChars)
    .replace(/[-._]+$/, '')

/** Registries with the hub's namespaces, and those that tools mean when they name none. */
const WELL_KNOWN = new Set([
  'hf.co',
  'huggingface.co',
  'registry.ollama.ai',
  'docker.io',
  'index.docker.io',
  'registry-1.docker.io'
])

/**
 * A namespace from the folders in front of a model's name. Those of another registry carry its host, since `acme` there
 * is somebody else. @param words perhaps with the host first
 */
export function namespaceOf(words: readonly string[]): string {
  const [host = '', ...below] = words
  const isHost = host === 'localhost' || /[.:]/.test(host)
  if (!isHost) return words.at(-1) ?? ''
  return WELL_KNOWN.has(host) ? (below.at(-1) ?? '') : words.join('-')
}

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
