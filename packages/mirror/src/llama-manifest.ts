/** Files that llama.cpp takes beside a model, or not at all, by the names that it knows them by. */
const SIDECAR = /mmproj|imatrix|ggml-vocab|^(?:mtp|eagle3|dflash|dspark)-/i
const LATER_SHARD = /-(?!0{4}1-of-)\d{5}-of-\d{5}\.gguf$/i
/** What `latest` is, in this order, else the first. */
const PREFERRED = ['q4_k_m', 'q4_0', 'q8_0']
const PREFERRED_PROJECTORS = ['f16', 'bf16']

export const isGguf = (path: string): boolean => /\.gguf$/i.test(path)
const baseOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1)

/** The first path that has one of some words between its dashes and dots, whatever their case. */
const firstOf = (paths: readonly string[], words: readonly string[]): string | undefined =>
  words.map((word) => paths.find((path) => hasWord(path, word))).find((path) => path !== undefined)

function hasWord(path: string, word: string): boolean {
  const between = (text: string): string => `-${text.toLowerCase().replace(/[./]/g, '-')}-`
  return word !== '' && between(path).includes(between(word))
}

/** The GGUF that llama.cpp means by `-hf org/name:TAG`, and its projector. The tag is a quant in any case, or `latest`. */
export function filesOfTag(
  paths: readonly string[],
  tag: string
): { readonly gguf: string; readonly mmproj: string | undefined } | undefined {
  const ggufs = paths.filter(isGguf)
  const models = ggufs.filter((path) => !SIDECAR.test(baseOf(path)) && !LATER_SHARD.test(path))
  const tags = tag === 'latest' ? PREFERRED : [tag]
  const gguf = firstOf(models, tags) ?? (tag === 'latest' ? models[0] : undefined)
  if (gguf === undefined) return undefined
  const projectors = ggufs.filter((path) => /mmproj/i.test(baseOf(path)))
  return { gguf, mmproj: firstOf(projectors, PREFERRED_PROJECTORS) ?? projectors[0] }
}
