import { type ReadAt, readGgufContents, readSafetensorsHeader } from '@svc/classify'
import type { Client, OpenFile } from '@svc/client'
import { blobReader } from './documents.ts'

/** What the headers of the weights say of a model. */
export interface WeightsFacts {
  /** Undefined where the headers do not tell, as for packed integers. */
  readonly parameters: number | undefined
  /** The GGUF that has a chat template. */
  readonly templateIn: string | undefined
}

/** Bytes of a number; integers may be several numbers packed. */
const FLOATS: Readonly<Record<string, number>> = { F64: 8, F32: 4, F16: 2, BF16: 2, F8_E4M3: 1, F8_E5M2: 1 }

export type WeightsFile = Pick<OpenFile, 'name' | 'kind' | 'digest' | 'size'>

/** Reads the headers of weights that are here, as blobs: to open a model would be a use of it. Unreadable ones tell nothing. */
export async function weightsFacts(client: Client, weights: readonly WeightsFile[]): Promise<WeightsFacts> {
  let parameters: number | undefined = weights.length === 0 ? undefined : 0
  let templateIn: string | undefined
  for (const { kind, name, digest, size } of weights) {
    const read = kind === 'weights.gguf' ? readGgufContents : floatsIn
    const found = await read(blobReader(client, digest), size).catch(() => undefined)
    if (found?.hasTemplate === true) templateIn ??= name
    parameters = parameters === undefined || found === undefined ? undefined : parameters + found.parameters
  }
  return { parameters, templateIn }
}

async function floatsIn(readAt: ReadAt, sizeBytes: number) {
  const header = await readSafetensorsHeader(readAt, sizeBytes)
  if (header.format !== 'safetensors') return undefined
  let parameters = 0
  for (const [dtype, bytes] of header.bytesByDtype) {
    if (FLOATS[dtype] === undefined) return undefined
    parameters += bytes / FLOATS[dtype]
  }
  return { parameters, hasTemplate: false }
}
