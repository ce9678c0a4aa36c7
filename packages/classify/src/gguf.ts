import { defined } from './defined.ts'
import { readGgufDefect } from './gguf-tensors.ts'
import { ARRAY, BEYOND, FLAG, GgufWalker, hasMagic, MalformedGguf, readVersion, valuesOf } from './gguf-walker.ts'
import { looksLike } from './looks.ts'
import { GGUF_HEAD_BYTES } from './reads.ts'
import type { GgufSummary, HeaderProblem, ReadAt } from './types.ts'

const MAX_CONTEXT_KEYS = 64
const MAX_FACTS = 1024
const TOKENS = 'tokenizer.ggml.tokens'

/** Reads the key/values behind the version. `found` has those that came before it throws. */
function readWanted(walker: GgufWalker, found: Map<string, string | number>): void {
  walker.count()
  const keyCount = walker.count()
  let contextKeys = 0
  for (let i = 0; i < keyCount; i++) {
    const key = walker.key()
    const type = walker.u32()
    const value = walker.value(type)
    // neither a flag nor a list counts as a number.
    if (key === undefined || value === undefined || type === FLAG || typeof value === 'object' || found.has(key))
      continue
    if (WANTED.has(key) || (key.endsWith('.context_length') && ++contextKeys <= MAX_CONTEXT_KEYS)) found.set(key, value)
  }
}

/**
 * Parses the general key/values at the start of a GGUF (version 1 to 3, either byte order). `head` is the start of the
 * file, of which at most a megabyte is used. Whatever lies beyond is unknown (`complete: false`), not an error.
 */
export function parseGgufHead(head: Uint8Array, sizeBytes: number): GgufSummary | HeaderProblem {
  const problem = (text: string): HeaderProblem => ({
    format: 'unreadable',
    problem: text,
    looksLike: looksLike(head, sizeBytes)
  })
  if (!hasMagic(head)) return problem('the magic "GGUF" is missing')
  const walker = new GgufWalker(head, sizeBytes)
  const cut = (text: string): HeaderProblem => ({
    format: 'unreadable',
    problem: text,
    looksLike: 'a damaged or truncated GGUF file'
  })
  const found = new Map<string, string | number>()
  let complete = false
  try {
    const word = readVersion(walker)
    if (walker.version < 1 || walker.version > 3) return cut(`the version is ${word}, not 1 to 3`)
    readWanted(walker, found)
    complete = true
  } catch (error) {
    if (error instanceof MalformedGguf) return cut(error.message)
    if (error !== BEYOND) throw error
    if (head.length >= sizeBytes) return cut(`the file ends within its key/values, at byte ${sizeBytes}`)
    if (walker.version === 0) return cut('the header is incomplete')
  }
  const { text, whole } = valuesOf(found)
  const architecture = text('general.architecture')
  return {
    format: 'gguf',
    version: walker.version as 1 | 2 | 3,
    bigEndian: !walker.littleEndian,
    complete,
    ...defined({
      type: text('general.type'),
      architecture,
      contextLength: architecture === undefined ? undefined : whole(`${architecture}.context_length`),
      splitNo: whole('split.no'),
      splitCount: whole('split.count'),
      fileType: whole('general.file_type')
    })
  }
}

/** Key/values of a GGUF: texts, numbers, flags as 0 and 1, short lists of these; of the vocabulary its size. */
export type GgufFacts = ReadonlyMap<string, string | number | readonly number[]>

/** The key/values before the vocabulary, as far as `head` has them and they are well-formed; at most 1,024. */
export function ggufFacts(head: Uint8Array, sizeBytes: number): GgufFacts {
  const found = new Map<string, string | number | readonly number[]>()
  if (!hasMagic(head)) return found
  const walker = new GgufWalker(head, sizeBytes)
  try {
    readVersion(walker)
    if (walker.version < 1 || walker.version > 3) return found
    walker.count()
    for (let left = Math.min(walker.count(), MAX_FACTS); left > 0; left--) {
      const key = walker.key()
      const type = walker.u32()
      const value = key === TOKENS && type === ARRAY ? walker.arrayLength() : walker.value(type)
      if (key !== undefined && value !== undefined) found.set(key, value)
      if (key === TOKENS) break
    }
  } catch (error) {
    if (!(error instanceof MalformedGguf) && error !== BEYOND) throw error
  }
  return found
}

const WANTED = new Set(['general.type', 'general.architecture', 'general.file_type', 'split.no', 'split.count'])

/**
 * What the start of a GGUF says, by its general keys, and whether its tensors lie in it; what cannot be read is a value.
 * @throws only what `readAt` throws
 */
export async function readGgufHead(readAt: ReadAt, sizeBytes: number): Promise<GgufSummary | HeaderProblem> {
  const head = await readAt(0, Math.min(sizeBytes, GGUF_HEAD_BYTES))
  const summary = parseGgufHead(head, sizeBytes)
  if (summary.format === 'unreadable') return summary
  return { ...summary, ...defined({ defect: await readGgufDefect(readAt, sizeBytes, head) }) }
}
