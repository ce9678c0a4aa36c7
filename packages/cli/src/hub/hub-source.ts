import { tryParseTypedDigest } from '@svc/ref'

/** A model of the hub, as people and browsers write it. */
export interface HubSource {
  readonly repo: string
  readonly quant?: string | undefined
  readonly revision?: string | undefined
  /** The path of one file in the repository. */
  readonly file?: string | undefined
}

/** The address of a repository, of one of its revisions, or of one of its files; quants may follow. */
const ADDRESS =
  /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\/(?<repo>[^/:?#]+(?:\/[^/:?#]+)?)(?:\/(?:tree|blob|resolve)\/(?<revision>[^/:?#]+)(?:\/(?<file>[^:?#]+))?)?\/?(?:\?[^:#]*)?(?::(?<quant>[^/]*))?$/i

/** `org/name`, as the hub spells it, or just a name, then a branch, tag or commit, and quants: `@4.0bpw`, `:Q4_K_M,Q8_0`. */
const NAME =
  /^(?<repo>\w[^/\s:@+#]*(?:\/\w[^/\s:@+#]*)?)(?:@(?!sha256:)(?<revision>[^:@#?\s]+))?(?::(?<quant>[^/@+#\s]+))?$/
/** A lone word that ends like this is a file that does not exist. */
const FILE = /^[^/]+\.(?:gguf|safetensors)$/i

/** The address of something on the hub; undefined for anything else. */
export function tryParseHubAddress(text: string): HubSource | undefined {
  const found = ADDRESS.exec(text)?.groups as (HubSource & Record<string, string>) | undefined
  if (found === undefined) return undefined
  const { repo, quant, revision, file } = found
  return { repo, quant, revision, file: file === undefined ? undefined : decodeURIComponent(file) }
}

/** An address, or a name as llama.cpp spells it (`org/name:QUANT,…`, `gpt2`); undefined for anything else. */
export function tryParseHubSource(text: string): HubSource | undefined {
  if (tryParseTypedDigest(text) !== undefined || FILE.test(text)) return undefined
  return tryParseHubAddress(text) ?? (NAME.exec(text)?.groups as (HubSource & Record<string, string>) | undefined)
}
