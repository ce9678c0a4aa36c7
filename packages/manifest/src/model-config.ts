import { parseCanonical, sealDocument } from './canonical.ts'
import type { ManifestErrorCode } from './errors.ts'
import { FieldReader } from './field.ts'
import type { Sealed } from './types.ts'

/** Largest model config (spec doc.9). */
export const MAX_MODEL_CONFIG_BYTES = 1024 * 1024

/** A handful of facts, and what later versions may add. */
const MAX_VALUES = 1_000

/** The document behind the `config` entry (spec doc.9): facts about the model; unknown ones are absent. */
export interface ModelConfig {
  /** Architecture, e.g. `llama`. */
  readonly family?: string
  /** E.g. `gguf`, `safetensors`. */
  readonly weightsFormat?: string
  /** The member's quant. */
  readonly quantization?: string
  /** Tokens. */
  readonly contextLength?: number
  /** The text of the upstream `config.json`, verbatim. */
  readonly upstream?: string
}

function checkModelConfig(value: unknown, code: ManifestErrorCode): ModelConfig {
  const read = new FieldReader(code)
  const document = read.object(value, 'the model config')
  for (const key of ['family', 'weightsFormat', 'quantization']) {
    if (document[key] !== undefined) read.text(document[key], key)
  }
  if (document.contextLength !== undefined) read.count(document.contextLength, 'contextLength')
  if (document.upstream !== undefined && typeof document.upstream !== 'string') {
    read.fail('field', 'upstream must be a string', { field: 'upstream' })
  }
  return value as ModelConfig
}

/**
 * Seals a model config; undefined facts are omitted.
 * @throws ManifestError `E_INVALID`: `field`, `value`, `too-large` (> 1 MiB).
 */
export function sealModelConfig(
  facts: {
    readonly [K in keyof ModelConfig]: ModelConfig[K] | undefined
  }
): Sealed<ModelConfig> {
  const { family, weightsFormat, quantization, contextLength, upstream } = facts
  const document = {
    ...(family === undefined ? {} : { family }),
    ...(weightsFormat === undefined ? {} : { weightsFormat }),
    ...(quantization === undefined ? {} : { quantization }),
    ...(contextLength === undefined ? {} : { contextLength }),
    ...(upstream === undefined ? {} : { upstream })
  }
  return sealDocument(checkModelConfig(document, 'E_INVALID'), MAX_MODEL_CONFIG_BYTES)
}

/** Parses the bytes of a model config strictly; unknown fields are kept. @throws ManifestError `E_CORRUPTION`. */
export function parseModelConfig(bytes: Uint8Array): ModelConfig {
  return checkModelConfig(parseCanonical(bytes, MAX_MODEL_CONFIG_BYTES, MAX_VALUES), 'E_CORRUPTION')
}
