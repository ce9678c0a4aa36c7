// One file because the store, its readers and its partial blobs share their bytes.

import {
  type BlobInfo,
  type BlobReader,
  type BlobStore,
  type ByteRanges,
  type ByteSource,
  CasError,
  type HashResult,
  type IngestOptions,
  type IngestResult,
  type Lease,
  Leases,
  type PartialBlob,
  type PartialKey,
  type PartialOptions,
  type PartialStatus,
  type RemoveOptions,
  type ScrubReport,
  type VerifyOptions,
  type VerifyResult
} from '@svc/cas'
import { ByteRangeSet, totalBytes } from '@svc/internal-byte-ranges'
import { type Clock, systemClock } from '@svc/internal-clock'
import { KeyedLock } from '@svc/internal-concurrency'
import type { Sha256Digest } from '@svc/ref'
import { abortError, hashOf, requireExpected } from './memory-hash.ts'
import { readSource } from './memory-source.ts'

const CHUNK_BYTES = 256 << 10

interface Remains {
  readonly key: PartialKey
  readonly bytes: Uint8Array
  readonly ranges: ByteRanges
}

const closedError = (what: string): CasError => new CasError('E_CLOSED', `${what} is closed`)

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortError(signal)
}

/** @throws CasError `E_RANGE` */
function checkRange(start: number, end: number, sizeBytes: number): void {
  if (Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && start <= end && end <= sizeBytes) return
  throw new CasError('E_RANGE', `[${start}, ${end}) does not lie within the ${sizeBytes} bytes`)
}

/** @throws CasError `E_RANGE` */
function checkPartialKey({ key, sizeBytes }: PartialKey): void {
  if (key.length >= 1 && key.length <= 200 && Number.isSafeInteger(sizeBytes) && sizeBytes >= 0) return
  throw new CasError('E_RANGE', 'a partial blob has a key of 1 to 200 characters, and a size')
}

/** A store in memory, for tests and small tools. Hashes in the calling thread. */
export function createMemoryStore({ clock = systemClock }: { readonly clock?: Clock } = {}): BlobStore {
  return new MemoryStore(clock)
}

class MemoryStore implements BlobStore {
  readonly #clock: Clock
  readonly #blobs = new Map<Sha256Digest, { readonly bytes: Uint8Array; readonly writtenAtMs: number }>()
  readonly #leases = new Leases()
  readonly #open = new Set<MemoryPartial>()
  readonly #keys = new KeyedLock<string>(abortError)
  readonly #remains = new Map<string, Remains>()
  readonly #closing = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async stat(digest: Sha256Digest): Promise<BlobInfo | undefined> {
    this.#throwIfClosed()
    this.#leases.touch(digest)
    const found = this.#blobs.get(digest)
    return found && { digest, sizeBytes: found.bytes.length }
  }

  async open(digest: Sha256Digest): Promise<BlobReader> {
    this.#throwIfClosed()
    const found = this.#blobs.get(digest)
    if (found === undefined) throw new CasError('E_NOT_FOUND', `the store has no blob ${digest}`, { digest })
    this.#leases.touch(digest)
    return new MemoryReader(digest, found.bytes, this.#leases.acquire([digest]))
  }

  ingest(source: ByteSource, options: IngestOptions = {}): Promise<IngestResult> {
    return this.run(options.signal, async (signal) => {
      const bytes = await readSource(source, options.sizeBytes, signal)
      const result = await hashOf(bytes, options.attachments)
      options.onProgress?.(bytes.length)
      requireExpected(result, options)
      return this.commit(bytes, result, options, signal)
    })
  }

  /** Turns bytes into a blob; nobody may modify them afterwards. */
  async commit(
    bytes: Uint8Array,
    result: HashResult,
    options: Pick<IngestOptions, 'accept'>,
    signal: AbortSignal
  ): Promise<IngestResult> {
    this.#leases.touch(result.digest)
    await options.accept?.(result)
    throwIfAborted(signal)
    const existed = this.#blobs.has(result.digest)
    if (!existed) this.#blobs.set(result.digest, { bytes, writtenAtMs: this.#clock.monotonic() })
    return { ...result, existed }
  }

  async partial(key: PartialKey, options: PartialOptions = {}): Promise<PartialBlob> {
    checkPartialKey(key)
    return this.run(options.signal, async (signal) => {
      const release = await this.#keys.acquire(key.key, signal)
      const found = this.#remains.get(key.key)
      this.#remains.delete(key.key)
      const same =
        found !== undefined &&
        found.key.sizeBytes === key.sizeBytes &&
        (found.key.digest === undefined || key.digest === undefined || found.key.digest === key.digest)
      const digest = key.digest ?? (same ? found.key.digest : undefined)
      const known = digest === undefined ? key : { ...key, digest }
      const [bytes, ranges] = same ? [found.bytes, found.ranges] : [new Uint8Array(key.sizeBytes), []]
      const partial: MemoryPartial = new MemoryPartial(this, known, options, bytes, ranges, (kept) => {
        this.#open.delete(partial)
        if (kept !== undefined) this.#remains.set(key.key, kept)
        release()
      })
      this.#open.add(partial)
      return partial
    })
  }

  async remove(digest: Sha256Digest, { may }: RemoveOptions = {}): Promise<BlobInfo | undefined> {
    this.#throwIfClosed()
    const found = this.#blobs.get(digest)
    if (found === undefined || this.isLeased(digest)) return undefined
    const blob = { digest, sizeBytes: found.bytes.length }
    if (may?.({ ...blob, ageMs: this.#clock.monotonic() - found.writtenAtMs }) === false) return undefined
    this.#blobs.delete(digest)
    return blob
  }

  lease(digests?: Iterable<Sha256Digest>): Lease {
    return this.#leases.acquire(digests)
  }

  isLeased(digest: Sha256Digest): boolean {
    return this.#leases.covers(digest)
  }

  partialStatus(key: string): PartialStatus | undefined {
    const held = this.#held(key)
    const found = held?.remains() ?? this.#remains.get(key)
    if (found === undefined) return undefined
    const { sizeBytes } = found.key
    return { key, sizeBytes, writtenBytes: totalBytes(found.ranges), isHeld: held !== undefined }
  }

  listPartials(): readonly PartialStatus[] {
    const keys = new Set([...this.#remains.keys(), ...[...this.#open].map(({ key }) => key)])
    return [...keys].sort().flatMap((key) => this.partialStatus(key) ?? [])
  }

  async abortPartial(key: string): Promise<void> {
    this.#throwIfClosed()
    await this.#held(key)?.discard()
    this.#remains.delete(key)
  }

  #held(key: string): MemoryPartial | undefined {
    return [...this.#open].find((partial) => partial.key === key)
  }

  async *list(): AsyncGenerator<BlobInfo, void, undefined> {
    this.#throwIfClosed()
    for (const digest of [...this.#blobs.keys()].sort()) {
      const found = this.#blobs.get(digest)
      if (found !== undefined) yield { digest, sizeBytes: found.bytes.length }
    }
  }

  verify(digest: Sha256Digest, options: VerifyOptions = {}): Promise<VerifyResult> {
    this.#leases.touch(digest)
    return this.run(options.signal, async () => {
      const found = this.#blobs.get(digest)
      if (found === undefined) return { status: 'missing', sizeBytes: 0, attachments: {} }
      const { sizeBytes, attachments } = await hashOf(found.bytes, options.attachments)
      options.onProgress?.(sizeBytes)
      return { status: 'ok', sizeBytes, attachments }
    })
  }

  scrub(options: Parameters<BlobStore['scrub']>[0] = {}): Promise<ScrubReport> {
    return this.run(options.signal, async (signal) => {
      const all: BlobInfo[] = []
      for await (const info of this.list()) all.push(info)
      const bytesTotal = all.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
      let [blobs, bytes] = [0, 0]
      for (const { digest, sizeBytes } of all) {
        throwIfAborted(signal)
        await this.verify(digest)
        blobs++
        bytes += sizeBytes
        options.onProgress?.({ blobs, bytes, blobsTotal: all.length, bytesTotal })
      }
      return { checked: blobs, mismatched: [] }
    })
  }

  async close(): Promise<void> {
    this.#closing.abort()
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
    this.#blobs.clear()
    this.#remains.clear()
  }

  async run<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.#throwIfClosed()
    throwIfAborted(signal)
    const running = work(signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]))
    this.#underWay.add(running)
    try {
      return await running
    } catch (error) {
      if (!(error instanceof CasError && error.code === 'E_ABORTED')) throw error
      throw signal?.aborted ? abortError(signal) : closedError('the store')
    } finally {
      this.#underWay.delete(running)
    }
  }

  #throwIfClosed(): void {
    if (this.#closing.signal.aborted) throw closedError('the store')
  }
}

class MemoryReader implements BlobReader {
  readonly digest: Sha256Digest
  readonly sizeBytes: number
  readonly fd = undefined
  readonly #bytes: Uint8Array
  readonly #lease: Lease
  #closed = false

  constructor(digest: Sha256Digest, bytes: Uint8Array, lease: Lease) {
    this.digest = digest
    this.sizeBytes = bytes.length
    this.#bytes = bytes
    this.#lease = lease
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    if (this.#closed) throw closedError('the reader')
    checkRange(offset, Math.max(offset, this.sizeBytes), this.sizeBytes)
    const part = this.#bytes.subarray(offset, offset + target.length)
    target.set(part)
    return part.length
  }

  async *stream(range?: { readonly start: number; readonly end: number }): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      const { start, end } = range ?? { start: 0, end: this.sizeBytes }
      checkRange(start, end, this.sizeBytes)
      for (let offset = start; offset < end; offset += CHUNK_BYTES) {
        if (this.#closed) throw closedError('the reader')
        // copied, so that nobody can modify a blob through a chunk.
        yield this.#bytes.slice(offset, Math.min(end, offset + CHUNK_BYTES))
      }
    } finally {
      await this.close()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#lease.release()
  }
}

class MemoryPartial implements PartialBlob {
  readonly sizeBytes: number
  readonly fd = undefined
  readonly #store: MemoryStore
  readonly #key: PartialKey
  readonly #options: PartialOptions
  readonly #bytes: Uint8Array
  readonly #ranges: ByteRangeSet
  readonly #onEnd: (kept: Remains | undefined) => void
  #verified: HashResult | undefined
  #ended = false

  constructor(
    store: MemoryStore,
    key: PartialKey,
    options: PartialOptions,
    bytes: Uint8Array,
    ranges: ByteRanges,
    onEnd: (kept: Remains | undefined) => void
  ) {
    this.sizeBytes = key.sizeBytes
    this.#store = store
    this.#key = key
    this.#options = options
    this.#bytes = bytes
    this.#ranges = new ByteRangeSet(ranges)
    this.#onEnd = onEnd
  }

  get key(): string {
    return this.#key.key
  }

  ranges(): ByteRanges {
    return this.#ranges.toRanges()
  }

  async write(offset: number, bytes: Uint8Array): Promise<void> {
    this.#check(offset, offset + bytes.length)
    this.#verified = undefined
    this.#bytes.set(bytes, offset)
    this.#ranges.add(offset, offset + bytes.length)
  }

  markWritten(start: number, end: number): undefined {
    this.#check(start, end)
    this.#ranges.add(start, end)
  }

  unmark(start: number, end: number): void {
    this.#check(start, end)
    this.#verified = undefined
    this.#ranges.remove(start, end)
  }

  async read(target: Uint8Array, offset: number): Promise<number> {
    const end = Math.min(this.sizeBytes, offset + target.length)
    this.#check(offset, Math.max(offset, end))
    if (!this.#ranges.contains(offset, end))
      throw new CasError('E_INCOMPLETE', `[${offset}, ${end}) is not written yet`)
    target.set(this.#bytes.subarray(offset, end))
    return Math.max(0, end - offset)
  }

  async checkpoint(): Promise<void> {
    this.#check(0, 0)
  }

  async verify(): Promise<HashResult> {
    this.#check(0, 0)
    return this.#store.run(this.#options.signal, () => this.#verify())
  }

  async #verify(): Promise<HashResult> {
    if (this.#verified !== undefined) return this.#verified
    if (!this.#ranges.contains(0, this.sizeBytes)) {
      const missing = this.sizeBytes - this.#ranges.totalBytes
      throw new CasError('E_INCOMPLETE', `${missing} of ${this.sizeBytes} bytes are not written yet`, {
        sizeBytes: this.sizeBytes
      })
    }
    const result = await hashOf(this.#bytes, this.#options.attachments)
    try {
      requireExpected(result, { digest: this.#key.digest })
    } catch (error) {
      this.#ranges.clear()
      throw error
    }
    return (this.#verified = result)
  }

  async commit(options: Pick<IngestOptions, 'accept'> = {}): Promise<IngestResult> {
    this.#check(0, 0)
    return this.#store.run(this.#options.signal, async (signal) => {
      const result = await this.#verify()
      this.#check(0, 0)
      this.#ended = true
      try {
        return await this.#store.commit(this.#bytes, result, options, signal)
      } finally {
        this.#onEnd(undefined)
      }
    })
  }

  /** What the next holder of the key resumes. */
  remains(): Remains {
    return { key: this.#key, bytes: this.#bytes, ranges: this.#ranges.toRanges() }
  }

  async release(): Promise<void> {
    this.#end(this.remains())
  }

  async discard(): Promise<void> {
    this.#end(undefined)
  }

  #end(kept: Remains | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#onEnd(kept)
  }

  #check(start: number, end: number): void {
    if (this.#ended) throw closedError('the partial blob')
    checkRange(start, end, this.sizeBytes)
  }
}
