import { open, readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import {
  type CacheShape,
  cacheNeed,
  configCache,
  GGUF_HEAD_BYTES,
  ggufCache,
  ggufFacts,
  MAX_CONFIG_BYTES
} from '@svc/classify'
import type { View } from '@svc/client'
import type { Machine } from '../hub/machine.ts'
import { fitOf } from '../hub/plan-table.ts'
import { isWeights } from '../models/model-facts.ts'

/** Shorter contexts are of no use; a model that does not fit with this one is started all the same. */
const LEAST_TOKENS = 2048

/** A context, and what a model takes with it. */
export interface Context {
  readonly tokens: number
  readonly needBytes: number
  readonly isFitting: boolean
}

/**
 * The longest context that fits this machine beside the weights: the model's own, at most 32,768 tokens, or as often half of
 * it as necessary. Undefined where the headers do not tell how its cache grows.
 */
export async function contextThatFits(view: View, machine: Machine): Promise<Context | undefined> {
  const shape = await cacheShape(view)
  if (typeof shape === 'string') return undefined
  const loaded = view.files.filter(
    (file) => isWeights(file) || file.role === 'vision-projector' || file.role === 'draft'
  )
  const weightsBytes = loaded.reduce((sum, { size }) => sum + size, 0)
  for (let tokens = cacheNeed(shape, 0).contextTokens; ; tokens = Math.floor(tokens / 2)) {
    const { cacheBytes, computeBytes } = cacheNeed(shape, tokens)
    const needBytes = weightsBytes + cacheBytes + computeBytes
    const isFitting = fitOf(needBytes, 0, machine).fit === 'fits'
    if (isFitting || tokens / 2 < LEAST_TOKENS) return { tokens, needBytes, isFitting }
  }
}

/** A string says why it is unknown. */
async function cacheShape({ files }: View): Promise<CacheShape | string> {
  const [first] = files.filter(({ kind }) => kind === 'weights.gguf').sort((a, b) => (a.part ?? 0) - (b.part ?? 0))
  if (first !== undefined) return ggufCache(ggufFacts(await headOf(first.path), first.size))
  const config = files.find(({ name, size }) => basename(name) === 'config.json' && size <= MAX_CONFIG_BYTES)
  return config === undefined ? 'it has no config.json' : configCache(await readFile(config.path, 'utf8'))
}

async function headOf(path: string): Promise<Uint8Array> {
  const file = await open(path)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(GGUF_HEAD_BYTES), 0, GGUF_HEAD_BYTES, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}
