import { PICKLE_START_BYTES } from './pickles.ts'
import type { ListedFile, ReadKind, Recognition, RequiredRead } from './types.ts'

/** The longest `config.json` that is read (spec doc.9: the model config, which keeps it, is at most 1 MiB). */
export const MAX_CONFIG_BYTES = 1024 * 1024
/** The longest licence text that is read and kept (spec rec.20). */
export const MAX_LICENCE_BYTES = 256 * 1024
/** Longest safetensors header; the format's own limit. */
export const MAX_SAFETENSORS_HEADER_BYTES = 100_000_000
/** Only the start of a GGUF is read: the general keys precede the vocabulary. */
export const GGUF_HEAD_BYTES = 1024 * 1024

const LIMITS: Record<ReadKind, number> = {
  start: PICKLE_START_BYTES,
  'safetensors-header': 8 + MAX_SAFETENSORS_HEADER_BYTES,
  'gguf-head': GGUF_HEAD_BYTES,
  config: MAX_CONFIG_BYTES,
  licence: MAX_LICENCE_BYTES
}

/**
 * The files whose content, not just their digest, affects the sealed bytes, and how much of each is needed. Sorted by
 * kind, then by name. A `config` or `licence` with `sizeBytes > maxBytes` is not read at all.
 */
export function requiredReads(recognition: Recognition): RequiredRead[] {
  const read = (what: ReadKind, { name, sizeBytes }: ListedFile): RequiredRead => ({
    what,
    name,
    sizeBytes,
    maxBytes: LIMITS[what]
  })
  return [
    ...(recognition.config ? [read('config', recognition.config)] : []),
    ...recognition.entries.filter(({ kind }) => kind === 'weights.gguf').map((file) => read('gguf-head', file)),
    ...recognition.licences.map((file) => read('licence', file)),
    ...recognition.entries
      .filter(({ kind }) => kind === 'weights.safetensors')
      .map((file) => read('safetensors-header', file)),
    ...recognition.entries.filter(({ kind }) => kind === 'opaque').map((file) => read('start', file))
  ]
}
