import { defined } from './defined.ts'
import { quantOfFileType, quantOfTensorType } from './gguf-quants.ts'
import { BEYOND, GgufWalker, hasMagic, MalformedGguf, readVersion, valuesOf } from './gguf-walker.ts'
import { looksLike } from './looks.ts'
import type { HeaderProblem, ReadAt } from './types.ts'

/** What the header of a GGUF says that it is (spec rec.26). */
export interface GgufIdentity {
  readonly format: 'gguf'
  /** `general.type`, e.g. `model`, `mmproj`, `adapter`. */
  readonly type?: string
  /** `general.architecture`. */
  readonly architecture?: string
  /** Of the file, not of the set that it belongs to. */
  readonly tensorCount: number
  /** `split.count`; absent where there is none. */
  readonly splitCount?: number
  /** By `general.file_type`, else by the type of most weights; absent if unknown, or if it was not asked for. */
  readonly quant?: string
}

/** The header of a GGUF, or why there is none. */
export type GgufIdentityFound = GgufIdentity | HeaderProblem

/**
 * How much of a file is read: all that is needed is usually in the first part, but quantizers write the file type behind the
 * vocabulary. Few steps, since each is a request to a hub.
 */
const STEPS = [64 * 1024, 1024 * 1024, 8 * 1024 * 1024, 24 * 1024 * 1024]
const MAX_TENSORS = 1_000_000
const MAX_DIMENSIONS = 8
const GENERAL = new Set(['general.type', 'general.architecture', 'general.file_type', 'split.count'])

/**
 * Reads what a GGUF is, from as little of its start as tells it.
 * @param wants whether the quant is wanted, too; it may lie behind the vocabulary
 * @param walk walks over a start of at most 24 MiB, which may take a third of a second; default: here
 * @throws only what `readAt` and `walk` throw
 */
export async function readGgufIdentity(
  readAt: ReadAt,
  sizeBytes: number,
  wants: { readonly quant: boolean },
  walk: (head: Uint8Array, sizeBytes: number) => GgufWalk | Promise<GgufWalk> = walkGgufHead
): Promise<GgufIdentityFound> {
  let head: Uint8Array = new Uint8Array(0)
  for (let i = 0; ; i++) {
    const end = Math.min(STEPS[i]!, sizeBytes)
    head = joined(head, await readAt(head.length, end - head.length))
    const walked = await walk(head, sizeBytes)
    if ('problem' in walked) return walked
    const isLast = walked.complete || head.length < end || end === sizeBytes || i === STEPS.length - 1
    // general.type and general.architecture precede everything else
    if (isLast || (walked.found.has('general.architecture') && (!wants.quant || walked.found.has('general.file_type'))))
      return identityOf(walked, wants.quant)
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}

interface HeadWalk {
  readonly complete: boolean
  readonly found: ReadonlyMap<string, string | number>
  readonly tensorCount: number
  /** Of most weights, if the table of tensors was read. */
  readonly tensorType?: number
}

/** What the start of a GGUF tells of it so far, or why it is none. */
export type GgufWalk = HeadWalk | HeaderProblem

/** Walks over the start of a GGUF of `sizeBytes`. */
export function walkGgufHead(head: Uint8Array, sizeBytes: number): GgufWalk {
  if (!hasMagic(head))
    return { format: 'unreadable', problem: 'the magic "GGUF" is missing', looksLike: looksLike(head, sizeBytes) }
  const cut = (problem: string): HeaderProblem => ({
    format: 'unreadable',
    problem,
    looksLike: 'a damaged or truncated GGUF file'
  })
  const walker = new GgufWalker(head, sizeBytes)
  const found = new Map<string, string | number>()
  let tensorCount = 0
  let tensorType: number | undefined
  let complete = false
  try {
    const word = readVersion(walker)
    if (walker.version < 1 || walker.version > 3) return cut(`the version is ${word}, not 1 to 3`)
    tensorCount = walker.count()
    for (let left = walker.count(); left > 0; left--) readKey(walker, found)
    if (!found.has('general.file_type')) tensorType = typeOfMost(walker, tensorCount)
    complete = true
  } catch (error) {
    if (error instanceof MalformedGguf) return cut(error.message)
    if (error !== BEYOND) throw error
    if (head.length >= sizeBytes) return cut(`the file ends within its header, at byte ${sizeBytes}`)
  }
  return { complete, found, tensorCount, ...defined({ tensorType }) }
}

function readKey(walker: GgufWalker, found: Map<string, string | number>): void {
  const key = walker.key()
  const value = walker.value(walker.u32())
  if (key === undefined || !GENERAL.has(key) || found.has(key)) return
  if (typeof value === 'string' || typeof value === 'number') found.set(key, value)
}

/** The type of most elements of a file's tensors. */
function typeOfMost(walker: GgufWalker, tensorCount: number): number | undefined {
  const elements = new Map<number, number>()
  for (let left = Math.min(tensorCount, MAX_TENSORS); left > 0; left--) {
    walker.key()
    const dimensions = walker.u32()
    if (dimensions > MAX_DIMENSIONS) throw new MalformedGguf(`a tensor of ${dimensions} dimensions`)
    let count = 1
    for (let i = 0; i < dimensions; i++) count *= walker.count()
    const type = walker.u32()
    walker.take(8)
    elements.set(type, (elements.get(type) ?? 0) + count)
  }
  return [...elements].sort(([a, x], [b, y]) => y - x || a - b)[0]?.[0]
}

function identityOf({ found, tensorCount, tensorType }: HeadWalk, wantsQuant: boolean): GgufIdentity {
  const { text, whole } = valuesOf(found)
  const fileType = whole('general.file_type')
  const quant =
    (fileType === undefined ? undefined : quantOfFileType(fileType)) ??
    (tensorType === undefined ? undefined : quantOfTensorType(tensorType))
  return {
    format: 'gguf',
    tensorCount,
    ...defined({
      type: text('general.type'),
      architecture: text('general.architecture'),
      splitCount: whole('split.count'),
      quant: wantsQuant ? quant : undefined
    })
  }
}
