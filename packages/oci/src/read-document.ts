import { type OciIndex, type OciManifest, parseObject, parseOciIndex, parseOciManifest } from './document.ts'
import { OciError } from './errors.ts'

/** What is read of the documents of registries and layouts, by their kind. All plain data. */
export interface OciDocuments {
  readonly index: OciIndex
  readonly manifest: OciManifest
  /** That a configuration names; undefined also for one that is no JSON object. */
  readonly quant: string | undefined
  /** Of a login server. Undefined where it gives none. */
  readonly token: string | undefined
}

/**
 * Reads a document as {@link OCI_DOCUMENTS} does, and throws as they do: perhaps in a thread, since the document's author chooses how
 * long reading it takes.
 */
export type ReadOciDocument = <Kind extends keyof OciDocuments>(
  kind: Kind,
  bytes: Uint8Array
) => Promise<OciDocuments[Kind]>

/** The readers of documents. @throws OciError `E_FORMAT` */
export const OCI_DOCUMENTS: {
  readonly [Kind in keyof OciDocuments]: (bytes: Uint8Array) => OciDocuments[Kind]
} = {
  index: parseOciIndex,
  manifest: parseOciManifest,
  quant: quantIn,
  token: (bytes) => {
    const { token, access_token: accessToken } = parseObject(bytes, 'the answer of a login server')
    const given = token ?? accessToken
    return typeof given === 'string' && /^[\x21-\x7e]+$/.test(given) ? given : undefined
  }
}

/** The classes of what {@link OCI_DOCUMENTS} throw, by their names. */
export const OCI_DOCUMENT_ERRORS = { OciError } as const

export const readOciDocumentHere: ReadOciDocument = async (kind, bytes) => OCI_DOCUMENTS[kind](bytes)

/** Ollama says it as `file_type`, Docker as `config.quantization`, perhaps with a slash. */
function quantIn(bytes: Uint8Array): string | undefined {
  let config: Readonly<Record<string, unknown>>
  try {
    config = parseObject(bytes, 'the configuration')
  } catch {
    return undefined
  }
  const inner = config.config as { readonly quantization?: unknown } | null | undefined
  const said = config.file_type ?? inner?.quantization
  return typeof said === 'string' ? said.slice(said.lastIndexOf('/') + 1) : undefined
}
