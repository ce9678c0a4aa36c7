import type { DiskBlobStore } from '@svc/cas'
import { ggufQuant, RAW } from '@svc/classify'
import { MAX_MODEL_CONFIG_BYTES, type Manifest, ManifestError, parseModelConfig } from '@svc/manifest'
import { isQuant } from '@svc/ref'
import { readSmallBlob } from './small-blob.ts'

/** The quant that an artifact from elsewhere gets in an index: that of its model config, or else `raw` (spec add.8). */
export async function storedConfigQuant(
  store: Pick<DiskBlobStore, 'stat' | 'open'>,
  { files }: Pick<Manifest, 'files'>
): Promise<string> {
  const config = files.find(({ kind }) => kind === 'config')
  // a stranger's manifest calls any bytes its configuration
  const isSmall = config !== undefined && config.size <= MAX_MODEL_CONFIG_BYTES
  const bytes = isSmall ? await readSmallBlob(store, config.digest) : undefined
  try {
    const { quantization } = parseModelConfig(bytes ?? new Uint8Array())
    return quantization !== undefined && isQuant(quantization) ? quantization : RAW
  } catch (error) {
    // the publisher's document may differ from ours: the pinned artifact is still accepted
    if (!(error instanceof ManifestError)) throw error
    return RAW
  }
}

/**
 * The quant that an artifact will get in an index, as far as that is known before its model config is here: the names of
 * its GGUFs say it, for those that this daemon's own imports made. Undefined where they do not.
 */
export async function futureQuant(
  store: Pick<DiskBlobStore, 'stat' | 'open'>,
  manifest: Pick<Manifest, 'files'>
): Promise<string | undefined> {
  const config = manifest.files.find(({ kind }) => kind === 'config')
  if (config === undefined || (await store.stat(config.digest)) !== undefined) return storedConfigQuant(store, manifest)
  const weights = manifest.files.find(({ kind }) => kind === 'weights.gguf')
  const quant = weights === undefined ? RAW : ggufQuant(weights.name)
  return quant === RAW ? undefined : quant
}
