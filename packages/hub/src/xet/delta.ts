import { ByteRangeSet, type ByteRanges, cutRanges, gapsOf, totalBytes } from '@svc/internal-byte-ranges'
import { forEachLimited } from '@svc/internal-concurrency'
import { SinkFailure } from '@svc/internal-http'
import type { DownloadOptions, RequestGates } from '../download.ts'
import { HubError } from '../errors.ts'
import type { Net } from '../net.ts'
import type { HubSink } from '../sink.ts'
import type { HubFile } from '../tree.ts'
import { XetAnswerError } from './answer-error.ts'
import type { Cas, XorbBody } from './cas.ts'
import { readChunks } from './chunks.ts'
import { type ChunkFetch, type Copy, planDelta } from './plan.ts'
import type { Term } from './reconstruction.ts'

/** An older version of a file, which the caller has. */
export interface OlderVersion {
  /** As it was listed at its commit. */
  readonly file: HubFile
  /** Fills `target` from `offset` on, or with fewer bytes. */
  read(target: Uint8Array, offset: number): Promise<number>
}

/** The outcome; {@link Hub.download} fetches the rest. */
export interface DeltaOutcome {
  readonly copiedBytes: number
  /** Bytes of packed chunks that were fetched. */
  readonly fetchedBytes: number
  /** Why it ended early: no such service, or unusable answers. */
  readonly failure?: Error
}

const COPY_BYTES = 1 << 20
const COPIES_AT_ONCE = 4
const FETCHES_AT_ONCE = 8

/** Puts what an older version has into the sink. Errors: see `Hub.reuse`. */
export async function reuseOlder(
  { net, lanes, cas }: { readonly net: Net; readonly lanes: RequestGates; readonly cas: Cas },
  file: HubFile,
  findOlder: () => Promise<OlderVersion | undefined>,
  sink: HubSink,
  options: DownloadOptions
): Promise<DeltaOutcome> {
  const missing = gapsOf(sink.ranges(), 0, file.sizeBytes)
  const isWorthIt = file.xetHash !== undefined && totalBytes(missing) > net.limits.smallFileBytes
  const older = isWorthIt ? await findOlder() : undefined
  if (older?.file.xetHash === undefined) return { copiedBytes: 0, fetchedBytes: 0 }
  const delta = new Delta(older, sink, options)
  try {
    const before = await cas.reconstruction(older.file, file, options)
    const now = await cas.reconstruction(file, file, options)
    const plan = planDelta(before, now, missing)
    await delta.copy(plan.copies)
    await forEachLimited(plan.fetches, FETCHES_AT_ONCE, options.signal, (fetch, signal) =>
      lanes.large.run(signal, async () => {
        const done = new ByteRangeSet()
        await cas.fetch(fetch, file, { ...options, signal }, (body) => delta.take(fetch, body, done))
        delta.fetched(fetch)
      })
    )
    return delta.outcome()
  } catch (error) {
    options.signal?.throwIfAborted()
    if (error instanceof SinkFailure) throw error.cause
    if (!(error instanceof XetAnswerError || error instanceof HubError)) throw error
    return delta.outcome(error)
  }
}

/** A file in progress. */
class Delta {
  readonly #older: OlderVersion
  readonly #sink: HubSink
  readonly #options: DownloadOptions
  /** Reused, as each is external memory. */
  readonly #buffers: Uint8Array[] = []
  #doneBytes: number
  #copiedBytes = 0
  #fetchedBytes = 0

  constructor(older: OlderVersion, sink: HubSink, options: DownloadOptions) {
    this.#older = older
    this.#sink = sink
    this.#options = options
    this.#doneBytes = totalBytes(sink.ranges())
  }

  outcome(failure?: Error): DeltaOutcome {
    const counts = { copiedBytes: this.#copiedBytes, fetchedBytes: this.#fetchedBytes }
    return { ...counts, ...(failure !== undefined && { failure }) }
  }

  /**
   * Reads and writes go through the thread pool. Blocks cannot be shared: Node has no call that shares ranges of files, and an
   * insertion rarely moves the rest by whole blocks.
   */
  async copy(copies: readonly Copy[]): Promise<void> {
    const pieces = copies.flatMap(({ from, to, lengthBytes }) =>
      cutRanges([[to, to + lengthBytes]], COPY_BYTES).map(([start, end]) => ({ start, end, from: from + start - to }))
    )
    await forEachLimited(pieces, COPIES_AT_ONCE, this.#options.signal, async ({ start, end, from }) => {
      const buffer = this.#buffers.pop() ?? Buffer.allocUnsafeSlow(COPY_BYTES)
      const bytes = buffer.subarray(0, end - start)
      await this.#readOlder(bytes, from)
      await this.#write(start, bytes)
      this.#copiedBytes += bytes.length
      this.#buffers.push(buffer)
    })
  }

  /** Writes the chunks of a body where terms have them. @param done what earlier attempts have written, and this one adds */
  async take({ ranges, terms }: ChunkFetch, { reader, begin }: XorbBody, done: ByteRangeSet): Promise<void> {
    for (const range of ranges) {
      await begin(range)
      const places = [...terms]
        .filter(([{ start, end }]) => range.start <= start && end <= range.end)
        .map(([term, wanted]) => ({ term, wanted, at: term.offset }))
      const expected = { count: range.end - range.start, lengthBytes: range.to - range.from }
      let chunk = range.start
      for await (const raw of readChunks(reader, expected)) {
        for (const place of places) {
          if (chunk < place.term.start || chunk >= place.term.end) continue
          await this.#put(raw, place, done)
          place.at += raw.length
        }
        chunk++
      }
      if (places.some(({ term, at }) => at !== endOf(term)))
        throw new XetAnswerError('chunks are shorter than a reconstruction says')
    }
  }

  fetched({ ranges }: ChunkFetch): void {
    for (const { from, to } of ranges) this.#fetchedBytes += to - from
  }

  async #put(
    raw: Uint8Array,
    { term, wanted, at }: { readonly term: Term; readonly wanted: ByteRanges; readonly at: number },
    done: ByteRangeSet
  ): Promise<void> {
    if (at + raw.length > endOf(term)) throw new XetAnswerError('chunks are longer than a reconstruction says')
    for (const [from, to] of wanted) {
      const [start, end] = [Math.max(at, from), Math.min(at + raw.length, to)]
      if (done.contains(start, end)) continue
      await this.#write(start, raw.subarray(start - at, end - at))
      done.add(start, end)
    }
  }

  async #readOlder(bytes: Uint8Array, from: number): Promise<void> {
    let count: number
    try {
      count = await this.#older.read(bytes, from)
    } catch (cause) {
      throw new XetAnswerError('the older version cannot be read', { cause })
    }
    if (count !== bytes.length) throw new XetAnswerError('the older version is shorter than its listing')
  }

  async #write(offset: number, bytes: Uint8Array): Promise<void> {
    try {
      await this.#sink.write(offset, bytes)
    } catch (cause) {
      throw new SinkFailure(cause)
    }
    this.#doneBytes += bytes.length
    this.#options.onProgress?.(this.#doneBytes)
  }
}

const endOf = ({ offset, lengthBytes }: Term): number => offset + lengthBytes
