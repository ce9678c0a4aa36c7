import { leastBytesIn, Pace, SLOW_MS } from '@svc/internal-net'
import type { Sha256Digest } from '@svc/ref'
import { OciError } from './errors.ts'
import { type Answer, headerOf } from './exchange.ts'
import { Patience, type PatienceOptions } from './patience.ts'
import type { Repository } from './registry.ts'

/** The destination of a blob, such as a store's partial file, which may hold ranges from an earlier attempt. */
export interface BlobSink {
  readonly sizeBytes: number
  /** The ranges it holds: `[start, end)`, sorted, not overlapping. */
  ranges(): readonly (readonly [number, number])[]
  write(offset: number, bytes: Uint8Array): Promise<void>
}

/** How to fetch a blob. */
export interface FetchOptions extends PatienceOptions {
  /** Called with the total of bytes in the sink, not a delta. */
  readonly onProgress?: (bytesDone: number) => void
  /**
   * In each of these spans, in milliseconds, a registry must send 1 KiB for each second, or the attempt counts as failed;
   * what a failed attempt brought gives new attempts only at that rate. Default 60,000.
   */
  readonly slowMs?: number
}

const WRITE_BYTES = 1 << 20

/**
 * Fetches the ranges of a blob that a sink lacks, and retries as long as there is progress. The digest is not checked;
 * the store does that.
 * @throws OciError `E_NOT_FOUND`, `E_DENIED`, `E_CREDENTIALS`, `E_RATE_LIMITED`, `E_UNAVAILABLE`; errors of the sink as
 *   they are; on abort the signal's reason
 */
export async function fetchBlob(
  repository: Repository,
  digest: Sha256Digest,
  sink: BlobSink,
  options: FetchOptions = {}
): Promise<void> {
  const patience = new Patience(options)
  const pace = new Pace()
  // report what an earlier attempt fetched at once: the next byte may take a while
  const held = heldBytes(sink)
  if (held > 0) options.onProgress?.(held)
  for (let gap = firstGap(sink); gap !== undefined; gap = firstGap(sink)) {
    const [start, end] = gap
    let at = start
    try {
      const answer = await repository.blob(digest, start, options)
      for await (const bytes of bodyFrom(answer, start, sink.sizeBytes, options.slowMs)) {
        const wanted = bytes.subarray(0, end - at)
        await sink.write(at, wanted)
        at += wanted.length
        if (pace.keepsUpWith(wanted.length)) patience.progress()
        options.onProgress?.(heldBytes(sink))
        options.signal?.throwIfAborted()
        if (at === end) break
      }
    } catch (failure) {
      await patience.after(failure)
    }
  }
}

function firstGap(sink: BlobSink): [number, number] | undefined {
  let at = 0
  for (const [start, end] of sink.ranges()) {
    if (start > at) return [at, start]
    at = end
  }
  return at < sink.sizeBytes ? [at, sink.sizeBytes] : undefined
}

const heldBytes = (sink: BlobSink): number => sink.ranges().reduce((total, [start, end]) => total + end - start, 0)

/**
 * The body from `start` on, in large chunks. A registry without range support sends everything; the bytes before
 * `start` are discarded.
 */
async function* bodyFrom(
  answer: Answer,
  start: number,
  sizeBytes: number,
  slowMs = SLOW_MS
): AsyncGenerator<Uint8Array, void, void> {
  let skip = answer.statusCode === 206 ? 0 : start
  checkHead(answer, start, sizeBytes)
  let left = sizeBytes - start
  const buffer = Buffer.alloc(Math.min(WRITE_BYTES, left))
  let filled = 0
  let arrived = 0
  // while a chunk is being written nothing is read, which is not the registry's fault
  let isWriting = false
  let hasWritten = false
  const leastBytes = leastBytesIn(slowMs)
  const watch = setInterval(() => {
    if (!hasWritten && arrived < leastBytes)
      answer.body.destroy(
        new OciError('E_UNAVAILABLE', `the registry sent ${arrived} bytes in ${Math.ceil(slowMs / 1_000)} s`)
      )
    arrived = 0
    hasWritten = isWriting
  }, slowMs)
  try {
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      let rest = chunk
      arrived += chunk.length
      if (skip > 0) {
        const dropped = Math.min(skip, rest.length)
        skip -= dropped
        rest = rest.subarray(dropped)
      }
      if (rest.length > left) throw new OciError('E_UNAVAILABLE', 'the registry sends more than the blob has')
      left -= rest.length
      while (rest.length > 0) {
        const count = Math.min(rest.length, buffer.length - filled)
        rest.copy(buffer, filled, 0, count)
        filled += count
        rest = rest.subarray(count)
        if (filled < buffer.length) continue
        isWriting = hasWritten = true
        yield buffer
        isWriting = false
        filled = 0
      }
    }
  } catch (cause) {
    // keep what arrived before the connection broke
    if (filled > 0) yield buffer.subarray(0, filled)
    if (cause instanceof OciError) throw cause
    throw new OciError('E_UNAVAILABLE', `the transfer broke off: ${(cause as Error).message}`, {}, cause)
  } finally {
    clearInterval(watch)
    answer.body.destroy()
  }
  if (filled > 0) yield buffer.subarray(0, filled)
  if (left > 0) throw new OciError('E_UNAVAILABLE', `the transfer ended ${left} bytes early`)
}

function checkHead(answer: Answer, start: number, sizeBytes: number): void {
  const fail = (what: string): never => {
    answer.body.destroy()
    throw new OciError('E_UNAVAILABLE', `the registry ${what}`)
  }
  if (headerOf(answer, 'content-encoding') !== undefined) fail('sends encoded bytes, which were asked to be plain')
  if (answer.statusCode === 206) {
    const range = /^bytes (\d{1,16})-(\d{1,16})\/(\d{1,16}|\*)$/i.exec(headerOf(answer, 'content-range') ?? '')
    if (range === null || Number(range[1]) !== start || (range[3] !== '*' && Number(range[3]) !== sizeBytes)) {
      fail('sends another range than was asked for')
    }
    return
  }
  const length = headerOf(answer, 'content-length')
  if (length !== undefined && Number(length) !== sizeBytes)
    fail(`has a blob of ${length} bytes instead of ${sizeBytes}`)
}
