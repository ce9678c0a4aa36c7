import { ClassifyError } from './errors.ts'
import { type JsonEvents, JsonScanner } from './json-scan.ts'
import { LOOK_BYTES, looksLike } from './looks.ts'
import { MAX_SAFETENSORS_HEADER_BYTES } from './reads.ts'
import type { HeaderProblem, ReadAt, SafetensorsSummary } from './types.ts'

/** Bits per element, by dtype. Tensors of unknown dtypes are counted by their offsets. */
const BITS: ReadonlyMap<string, number> = new Map([
  ['F4', 4],
  ...['F6_E2M3', 'F6_E3M2'].map((dtype) => [dtype, 6] as const),
  ...['BOOL', 'U8', 'I8', 'F8_E4M3', 'F8_E5M2', 'F8_E8M0', 'F8_E4M3FNUZ', 'F8_E5M2FNUZ'].map(
    (dtype) => [dtype, 8] as const
  ),
  ...['I16', 'U16', 'F16', 'BF16'].map((dtype) => [dtype, 16] as const),
  ...['I32', 'U32', 'F32'].map((dtype) => [dtype, 32] as const),
  ...['C64', 'F64', 'I64', 'U64'].map((dtype) => [dtype, 64] as const)
])
const MAX_DTYPES = 64
const MAX_DTYPE_CHARS = 32
const MAX_DEPTH = 32
/** About 2 ms of scanning, so that the event loop can run between two reads. */
const CHUNK_BYTES = 64 * 1024

class MalformedHeader extends Error {}

/**
 * Parses the JSON text of a safetensors header in chunks and sums the bytes per dtype. It keeps two numbers per tensor,
 * to prove that the offsets cover the data without gap or overlap: 16 bytes for every 45 or more of the header.
 */
export class SafetensorsHeader {
  readonly #scanner: JsonScanner
  readonly #tensors: TensorEvents
  readonly #headerBytes: number
  #seen = 0

  /** @param headerBytes the length of the text; @param dataBytes the length of the data after it. */
  constructor(headerBytes: number, dataBytes: number) {
    this.#headerBytes = headerBytes
    this.#tensors = new TensorEvents(dataBytes)
    this.#scanner = new JsonScanner(this.#tensors, { maxDepth: MAX_DEPTH, maxTextBytes: 64 })
  }

  /** @throws an error whose message is the problem; {@link readSafetensorsHeader} turns it into a value. */
  push(chunk: Uint8Array): void {
    if (this.#seen === 0 && chunk.length > 0 && chunk[0] !== 0x7b)
      throw new MalformedHeader('the header does not begin with "{"')
    this.#seen += chunk.length
    this.#scanner.push(chunk)
  }

  /** @throws as {@link push}. */
  end(): SafetensorsSummary {
    if (this.#seen !== this.#headerBytes)
      throw new MalformedHeader(`the header has ${this.#seen} bytes, not ${this.#headerBytes}`)
    this.#scanner.end()
    this.#tensors.proveCover()
    const bytesByDtype = new Map([...this.#tensors.bytesByDtype].sort(([a], [b]) => (a < b ? -1 : 1)))
    return { format: 'safetensors', headerBytes: this.#headerBytes, tensorCount: this.#tensors.count, bytesByDtype }
  }
}

/** Depth 1 is the header, depth 2 a tensor or `__metadata__`, depth 3 a shape or offsets; deeper values are ignored. */
class TensorEvents implements JsonEvents {
  readonly bytesByDtype = new Map<string, number>()
  count = 0
  #depth = 0
  #isMetadata = false
  #field: string | undefined = ''
  #dtype: string | undefined
  #elements: number | undefined
  #offsets: number[] | undefined
  #starts = new Float64Array(1024)
  #ends = new Float64Array(1024)
  readonly #dataBytes: number

  constructor(dataBytes: number) {
    this.#dataBytes = dataBytes
  }

  startObject(): void {
    this.#depth++
    if (this.#depth === 2) this.#dtype = this.#elements = this.#offsets = undefined
    if (this.#depth === 3) this.#otherValue()
  }

  endObject(): void {
    if (this.#depth-- === 2 && !this.#isMetadata) this.#endTensor()
  }

  startArray(): void {
    this.#depth++
    if (this.#depth === 1) throw new MalformedHeader('the header is not an object')
    if (this.#depth === 2) throw new MalformedHeader('a tensor is not an object')
    if (this.#depth !== 3) return this.#insideField()
    if (this.#isMetadata) this.#otherValue()
    if (this.#field === 'shape') this.#elements = 1
    else if (this.#field === 'data_offsets') this.#offsets = []
    else this.#otherValue()
  }

  endArray(): void {
    this.#depth--
  }

  key(text: string | undefined): void {
    if (this.#depth === 1) this.#isMetadata = text === '__metadata__'
    else if (this.#depth === 2) this.#field = text
  }

  string(text: string | undefined): void {
    if (this.#depth < 2) throw new MalformedHeader('a tensor is not an object')
    if (this.#depth > 2) return this.#insideField()
    if (this.#isMetadata) return
    if (this.#field !== 'dtype') return this.#otherValue()
    if (text === undefined || text.length > MAX_DTYPE_CHARS) throw new MalformedHeader('a dtype has an impossible name')
    this.#dtype = text
  }

  number(text: string | undefined): void {
    if (this.#depth === 3 && !this.#isMetadata && (this.#field === 'shape' || this.#field === 'data_offsets')) {
      const value = text !== undefined && /^\d+$/.test(text) ? Number(text) : Number.NaN
      if (!Number.isSafeInteger(value))
        throw new MalformedHeader(`a ${this.#field} contains a number that is not a size`)
      if (this.#field === 'shape') this.#elements = this.#elements! * value
      else if (this.#offsets!.push(value) > 2) throw new MalformedHeader('data_offsets are not a pair')
      return
    }
    this.literal()
  }

  literal(): void {
    if (this.#depth < 2) throw new MalformedHeader('a tensor is not an object')
    if (this.#depth === 2) this.#otherValue()
    else this.#insideField()
  }

  /** A value at depth 2 of another type than its key requires. Unknown keys of a tensor may have any value. */
  #otherValue(): void {
    if (this.#isMetadata) throw new MalformedHeader('__metadata__ contains something other than strings')
    if (this.#field === 'dtype' || this.#field === 'shape' || this.#field === 'data_offsets')
      throw new MalformedHeader(`a ${this.#field} is of the wrong type`)
  }

  /** A value below depth 2 that is not a number. */
  #insideField(): void {
    if (this.#field === 'shape' || this.#field === 'data_offsets')
      throw new MalformedHeader(`a ${this.#field} contains something other than numbers`)
  }

  #endTensor(): void {
    const dtype = this.#dtype
    const elements = this.#elements
    const offsets = this.#offsets
    if (dtype === undefined || elements === undefined || offsets?.length !== 2)
      throw new MalformedHeader('a tensor lacks dtype, shape or data_offsets')
    const [start, end] = offsets as [number, number]
    if (start > end || end > this.#dataBytes)
      throw new MalformedHeader(`tensor data [${start}, ${end}) lies outside of the ${this.#dataBytes} bytes of data`)
    const bits = BITS.get(dtype)
    // a product beyond 2^53 is inexact, but never equals a span within the file.
    if (bits !== undefined && (elements * bits) / 8 !== end - start)
      throw new MalformedHeader(`a tensor of ${elements} × ${dtype} claims ${end - start} bytes`)
    this.bytesByDtype.set(dtype, (this.bytesByDtype.get(dtype) ?? 0) + (end - start))
    if (this.bytesByDtype.size > MAX_DTYPES) throw new MalformedHeader(`there are more than ${MAX_DTYPES} dtypes`)
    if (this.count === this.#starts.length) [this.#starts, this.#ends] = [doubled(this.#starts), doubled(this.#ends)]
    this.#starts[this.count] = start
    this.#ends[this.count++] = end
  }

  /**
   * Sorted starts and sorted ends must form a chain from 0 to the end of the data: then every byte is covered by
   * exactly one tensor. (An empty tensor may lie anywhere, as it covers nothing.)
   */
  proveCover(): void {
    const starts = this.#starts.subarray(0, this.count).sort()
    const ends = this.#ends.subarray(0, this.count).sort()
    let covered = 0
    for (let i = 0; i < this.count; i++) {
      if (starts[i] !== covered)
        throw new MalformedHeader(
          `tensor data ${starts[i]! > covered ? 'leave a gap' : 'overlap'} at byte ${Math.min(starts[i]!, covered)}`
        )
      covered = ends[i]!
    }
    if (covered !== this.#dataBytes)
      throw new MalformedHeader(`the tensors end at byte ${covered} of ${this.#dataBytes} bytes of data`)
  }
}

function doubled(array: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  const next = new Float64Array(array.length * 2)
  next.set(array)
  return next
}

/**
 * Reads the header of a safetensors file, in pieces of 64 KiB: 8 bytes of length N ≤ 100,000,000 with 8 + N ≤ size, and
 * the JSON object. Checked: dtypes, shapes, and that the offsets cover the rest of the file without gap. Only 8 + N
 * bytes are read, and memory is bounded. A defect is a value, not an error.
 * @throws only what `readAt` throws.
 */
export async function readSafetensorsHeader(
  readAt: ReadAt,
  sizeBytes: number
): Promise<SafetensorsSummary | HeaderProblem> {
  const head = await readAt(0, Math.min(sizeBytes, LOOK_BYTES))
  const headerBytes =
    head.length < 8 ? Number.NaN : Number(new DataView(head.buffer, head.byteOffset).getBigUint64(0, true))
  const problem = (text: string, looks = looksLike(head, sizeBytes)): HeaderProblem => ({
    format: 'unreadable',
    problem: text,
    looksLike: looks
  })
  if (Number.isNaN(headerBytes)) return problem(`the file has only ${sizeBytes} bytes`)
  if (headerBytes > MAX_SAFETENSORS_HEADER_BYTES) return problem('it states a header of more than 100 MB')
  const damaged = 'a damaged or truncated safetensors file'
  if (8 + headerBytes > sizeBytes)
    return problem(
      `it states a header of ${headerBytes} bytes and has ${sizeBytes} in all`,
      head[8] === 0x7b ? damaged : undefined
    )
  const header = new SafetensorsHeader(headerBytes, sizeBytes - 8 - headerBytes)
  for (let offset = 8; offset < 8 + headerBytes; ) {
    const chunk = await readAt(offset, Math.min(CHUNK_BYTES, 8 + headerBytes - offset))
    if (chunk.length === 0) return problem('the file was truncated while it was read')
    try {
      header.push(chunk)
    } catch (error) {
      return problem(reasonOf(error), head[8] === 0x7b ? damaged : undefined)
    }
    offset += chunk.length
  }
  try {
    return header.end()
  } catch (error) {
    return problem(reasonOf(error), head[8] === 0x7b ? damaged : undefined)
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof MalformedHeader || error instanceof ClassifyError) return error.message
  throw error
}
