import { open } from 'node:fs/promises'
import { type ReadAt, readGgufContents, readSafetensorsHeader } from '@svc/classify'
import type { OpenFile } from '@svc/client'

/** What the headers of the weights say of a model. */
export interface WeightsFacts {
  /** Undefined where the headers do not tell, as for packed integers. */
  readonly parameters: number | undefined
  /** The GGUF that has a chat template. */
  readonly templateIn: string | undefined
}

/** Bytes of a number; integers may be several numbers packed. */
const FLOATS: Readonly<Record<string, number>> = { F64: 8, F32: 4, F16: 2, BF16: 2, F8_E4M3: 1, F8_E5M2: 1 }

/** Reads the headers of weights that are here, from the store; those that cannot be read tell nothing. */
export async function weightsFacts(weights: readonly OpenFile[]): Promise<WeightsFacts> {
  let parameters: number | undefined = weights.length === 0 ? undefined : 0
  let templateIn: string | undefined
  for (const { kind, name, path, size } of weights) {
    const found = await reading(path, (readAt) =>
      kind === 'weights.gguf' ? readGgufContents(readAt, size) : floatsIn(readAt, size)
    ).catch(() => undefined)
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

async function reading<T>(path: string, work: (readAt: ReadAt) => Promise<T>): Promise<T> {
  const file = await open(path)
  try {
    return await work(async (start, lengthBytes) => {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(lengthBytes), 0, lengthBytes, start)
      return buffer.subarray(0, bytesRead)
    })
  } finally {
    await file.close()
  }
}
