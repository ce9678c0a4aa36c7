import { BEYOND, GgufWalker, hasMagic, MalformedGguf, readVersion } from './gguf-walker.ts'
import { GGUF_HEAD_BYTES } from './reads.ts'
import type { ReadAt } from './types.ts'

/** Elements of a block and its bytes, by ggml's number of the tensor type. Tensors of other types count as empty. */
const BLOCKS: ReadonlyMap<number, readonly [elements: number, bytes: number]> = new Map([
  [0, [1, 4]],
  [1, [1, 2]],
  [2, [32, 18]],
  [3, [32, 20]],
  [6, [32, 22]],
  [7, [32, 24]],
  [8, [32, 34]],
  [9, [32, 36]],
  [10, [256, 84]],
  [11, [256, 110]],
  [12, [256, 144]],
  [13, [256, 176]],
  [14, [256, 210]],
  [15, [256, 292]],
  [16, [256, 66]],
  [17, [256, 74]],
  [18, [256, 98]],
  [19, [256, 50]],
  [20, [32, 18]],
  [21, [256, 110]],
  [22, [256, 82]],
  [23, [256, 136]],
  [24, [1, 1]],
  [25, [1, 2]],
  [26, [1, 4]],
  [27, [1, 8]],
  [28, [1, 8]],
  [29, [256, 56]],
  [30, [1, 2]],
  [34, [256, 54]],
  [35, [256, 66]],
  [39, [32, 17]]
])
/** The format's own limit. */
const MAX_DIMENSIONS = 4
const MAX_TENSORS = 1 << 20
const MAX_KEYS = 1 << 16
const DEFAULT_ALIGNMENT = 32
const MAX_ALIGNMENT = 1 << 20
/** How much is read for the list of tensors, which follows the vocabulary: first the usual head, then more. */
const STEPS = [GGUF_HEAD_BYTES, 8 << 20, 32 << 20]

/**
 * What is wrong with the tensors that a GGUF lists, for people: they end beyond the file, overlap, or are not aligned.
 * Reads no tensor, and of a longer list of tensors than 32 MiB nothing: then, and for what is no GGUF, undefined.
 * @param head the first megabyte, or the whole file @throws only what `readAt` throws
 */
export async function readGgufDefect(readAt: ReadAt, sizeBytes: number, head: Uint8Array): Promise<string | undefined> {
  if (!hasMagic(head)) return undefined
  for (const stepBytes of STEPS) {
    const bytes = stepBytes <= GGUF_HEAD_BYTES ? head : await readAt(0, Math.min(sizeBytes, stepBytes))
    const found = defectIn(bytes, sizeBytes)
    if (found !== 'beyond') return found?.defect
  }
  return undefined
}

/** The defect of a whole file, as far as the start of a file tells. */
export function ggufDefect(head: Uint8Array, sizeBytes: number): string | undefined {
  const found = hasMagic(head) ? defectIn(head, sizeBytes) : undefined
  return found === 'beyond' ? undefined : found?.defect
}

/** What a GGUF has beside its general key/values. */
export interface GgufContents {
  /** Numbers in its tensors. */
  readonly parameters: number
  /** Whether it has a chat template. */
  readonly hasTemplate: boolean
}

/**
 * Counts what the header of a GGUF lists; of one file, not of a split model. Undefined for what is no GGUF, and for a header of
 * more than 32 MiB. @throws only what `readAt` throws
 */
export async function readGgufContents(readAt: ReadAt, sizeBytes: number): Promise<GgufContents | undefined> {
  for (const stepBytes of STEPS) {
    const head = await readAt(0, Math.min(sizeBytes, stepBytes))
    if (!hasMagic(head)) return undefined
    const walker = new GgufWalker(head, sizeBytes)
    try {
      readVersion(walker)
      if (walker.version < 1 || walker.version > 3) return undefined
      return contentsOf(walker)
    } catch (error) {
      if (error instanceof MalformedGguf) return undefined
      if (error !== BEYOND) throw error
    }
  }
  return undefined
}

function contentsOf(walker: GgufWalker): GgufContents {
  const count = walker.count()
  if (count > MAX_TENSORS) throw new MalformedGguf(`it lists ${count} tensors`)
  let hasTemplate = false
  for (let left = walker.count(); left > 0; left--) {
    if (walker.key() === 'tokenizer.chat_template') hasTemplate = true
    walker.value(walker.u32())
  }
  let parameters = 0
  for (let i = 0; i < count; i++) {
    walker.key()
    parameters += elementsAt(walker, i)
    walker.u32()
    walker.u64()
  }
  return { parameters, hasTemplate }
}

/** `beyond` if the list of tensors goes on after the head. */
function defectIn(head: Uint8Array, sizeBytes: number): { readonly defect: string } | 'beyond' | undefined {
  const walker = new GgufWalker(head, sizeBytes)
  try {
    readVersion(walker)
    if (walker.version < 1 || walker.version > 3) return undefined
    checkTensors(walker, sizeBytes)
    return undefined
  } catch (error) {
    if (error instanceof MalformedGguf) return { defect: error.message }
    if (error !== BEYOND) throw error
    return head.length < sizeBytes ? 'beyond' : { defect: `the file ends within its header, at byte ${sizeBytes}` }
  }
}

function checkTensors(walker: GgufWalker, sizeBytes: number): void {
  const count = walker.count()
  const alignment = readAlignment(walker)
  if (count > MAX_TENSORS) throw new MalformedGguf(`it lists ${count} tensors`)
  const starts: number[] = []
  const ends: number[] = []
  for (let i = 0; i < count; i++) {
    const [offset, lengthBytes] = tensorAt(walker, i, alignment)
    starts.push(offset)
    ends.push(offset + lengthBytes)
  }
  if (count === 0) return
  // beyond 2^53 numbers are inexact, but then no file is as long.
  const dataBytes = sizeBytes - Math.ceil(walker.offset / alignment) * alignment
  const end = ends.reduce((most, each) => Math.max(most, each), 0)
  if (end > dataBytes)
    throw new MalformedGguf(`its tensors take ${end} bytes, and the file has ${Math.max(0, dataBytes)} for them`)
  requireApart(starts, ends)
}

/** No two ranges overlap exactly if, all sorted, each start is at or after the end before it. Empty ones may lie anywhere. */
function requireApart(starts: readonly number[], ends: readonly number[]): void {
  const isTaken = (_: number, i: number): boolean => ends[i]! > starts[i]!
  const from = Float64Array.from(starts.filter(isTaken)).sort()
  const to = Float64Array.from(ends.filter(isTaken)).sort()
  const at = from.findIndex((start, i) => i > 0 && start < to[i - 1]!)
  if (at >= 0) throw new MalformedGguf(`its tensors overlap at byte ${from[at]} of their data`)
}

/** Walks over the key/values. @returns where tensors may begin: multiples of it */
function readAlignment(walker: GgufWalker): number {
  let alignment = DEFAULT_ALIGNMENT
  const count = walker.count()
  if (count > MAX_KEYS) throw new MalformedGguf(`it lists ${count} keys`)
  for (let left = count; left > 0; left--) {
    const key = walker.key()
    const value = walker.value(walker.u32())
    if (key === 'general.alignment' && typeof value === 'number') alignment = value
  }
  if (alignment < 1 || alignment > MAX_ALIGNMENT)
    throw new MalformedGguf(`its tensors are aligned to ${alignment} bytes`)
  return alignment
}

/** The numbers of a tensor, whose dimensions come next. */
function elementsAt(walker: GgufWalker, i: number): number {
  const dimensions = walker.u32()
  if (dimensions > MAX_DIMENSIONS) throw new MalformedGguf(`tensor ${i + 1} has ${dimensions} dimensions`)
  let elements = 1
  for (let left = dimensions; left > 0; left--) elements *= walker.count()
  return elements
}

/** Offset and length of a tensor within the data. */
function tensorAt(walker: GgufWalker, i: number, alignment: number): readonly [number, number] {
  walker.key()
  const elements = elementsAt(walker, i)
  const [perBlock, blockBytes] = BLOCKS.get(walker.u32()) ?? [1, 0]
  const offset = walker.u64()
  if (offset % alignment !== 0)
    throw new MalformedGguf(`tensor ${i + 1} begins at ${offset}, not at a multiple of ${alignment}`)
  return [offset, Math.ceil(elements / perBlock) * blockBytes]
}
