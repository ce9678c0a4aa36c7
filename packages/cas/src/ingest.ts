import { allOf, Gate } from '@svc/internal-concurrency'
import { Cloner } from './clone.ts'
import { commitBlob, requireFreeSpace } from './commit-blob.ts'
import { abortError, CasError, decodeError, ioError, throwIfAborted } from './errors.ts'
import { filePass } from './file-pass.ts'
import { randomId } from './layout.ts'
import { PassHasher } from './pass-hasher.ts'
import type { ByteSource, IngestNamedOptions, IngestOptions, IngestResult, NamedFileSource } from './store.ts'
import type { StoreContext } from './store-context.ts'
import { StreamReader } from './stream-reader.ts'
import type { SessionResult, SessionSpec } from './thread-protocol.ts'

/** Streams up to this size are hashed in place, without a thread, in at most 0.15 ms. */
const INLINE_BYTES = 256 << 10
const STREAM_BLOCK_BYTES = 512 << 10
const STREAM_BLOCKS = 3
/** Larger files are opened by their caller. */
const MAX_NAMED_BYTES = 4 << 20
/** Small files that one message brings to a thread, and that are committed together. */
const MAX_NAMED = 64

/** An error that belongs to one file of a group; a defect of the program ends the group. */
function casErrorOf(error: unknown): CasError {
  if (error instanceof CasError) return error
  throw error
}

/** Takes bytes into a disk store: streams and files are hashed, checked and committed. */
export class Ingestor {
  readonly #context: StoreContext
  /** Files between their open and their commit: limits the number of descriptors. */
  readonly #files = new Gate(128, abortError)
  /** Groups of small files, each with one descriptor: two in the threads while two are committed. */
  readonly #groups = new Gate(4, abortError)
  /** Streams with buffers: limits memory (32 × 1.5 MiB). */
  readonly #streams = new Gate(32, abortError)

  readonly #cloner: Cloner

  constructor(context: StoreContext) {
    this.#context = context
    this.#cloner = new Cloner(context)
  }

  ingest(source: ByteSource, options: IngestOptions = {}): Promise<IngestResult> {
    return this.#context.run(options.signal, (signal) =>
      'fd' in source ? this.#file(source.fd, options, signal) : this.#stream(source, options, signal)
    )
  }

  #file(fd: number, options: IngestOptions, signal: AbortSignal): Promise<IngestResult> {
    return this.#files.run(signal, async () => {
      const sizeBytes = this.#sourceSize(fd, options)
      const part = this.#context.layout.part(randomId())
      const file = { fd, part, sizeBytes }
      const { partFd, ...result } = await filePass(this.#context, this.#cloner, file, options, signal)
      options.onProgress?.(result.sizeBytes)
      // passing the size refuses a file that shrank or grew while it was read.
      return commitBlob(this.#context, result, { part, partFd }, { ...options, sizeBytes }, signal)
    })
  }

  /** Each file of the result is that at its index in `sources`. @throws CasError as {@link DiskBlobStore.ingestNamed} */
  async ingestNamed(
    sources: readonly NamedFileSource[],
    options: IngestNamedOptions = {}
  ): Promise<readonly (IngestResult | CasError)[]> {
    return this.#context.run(options.signal, async (signal) => {
      const groups: Promise<readonly (IngestResult | CasError)[]>[] = []
      for (let at = 0; at < sources.length; at += MAX_NAMED)
        groups.push(this.#runNamed(sources.slice(at, at + MAX_NAMED), options, signal))
      const outcomes = (await allOf(groups)).flat()
      throwIfAborted(signal)
      return outcomes
    })
  }

  /** One thread reads, hashes and writes the files, in one message; another commits them together. */
  async #runNamed(
    sources: readonly NamedFileSource[],
    options: IngestNamedOptions,
    signal: AbortSignal
  ): Promise<readonly (IngestResult | CasError)[]> {
    for (const { identity } of sources) {
      if (identity.size < MAX_NAMED_BYTES) continue
      const sizeBytes = Number(identity.size)
      throw new CasError('E_RANGE', `a file of ${sizeBytes} bytes is opened by its caller`, { sizeBytes })
    }
    return this.#groups.run(signal, async () => {
      const { layout, threads, delaysBlocks: writeEarly } = this.#context
      const { attachments = [] } = options
      const files = sources.map(({ path, identity: { dev, ino, size, mtimeNs, ctimeNs } }) => ({
        path,
        identity: { dev, ino, size, mtimeNs, ctimeNs },
        part: layout.part(randomId())
      }))
      const outcomes = await threads.runNamed({ files, attachments, writeEarly }, signal)
      return allOf(
        outcomes.map(async (outcome, i) => {
          if ('error' in outcome) return casErrorOf(decodeError(outcome.error))
          const { partFd, ...result } = outcome.result
          const hashed = { ...result, digest: result.digest! }
          return commitBlob(this.#context, hashed, { part: files[i]!.part, partFd }, options, signal).catch(casErrorOf)
        })
      )
    })
  }

  #sourceSize(fd: number, options: IngestOptions): number {
    let sizeBytes: number
    try {
      const stat = this.#context.port.fstatSync(fd)
      if (!stat.isFile()) throw new Error('the descriptor is not a regular file')
      sizeBytes = stat.size
    } catch (error) {
      throw ioError(error, 'read source')
    }
    if (options.sizeBytes !== undefined && options.sizeBytes !== sizeBytes) {
      throw new CasError(
        'E_SIZE_MISMATCH',
        `the file has ${sizeBytes} bytes instead of the announced ${options.sizeBytes}`,
        { sizeBytes, expectedSizeBytes: options.sizeBytes }
      )
    }
    return sizeBytes
  }

  /**
   * Whether ingesting this file would share its blocks rather than write them. Tries it, and deletes the clone.
   * @throws CasError
   */
  async sharesBlocks(fd: number): Promise<boolean> {
    return this.#context.run(undefined, async () => {
      const part = this.#context.layout.part(randomId())
      const clone = await this.#cloner.clone(fd, part)
      if (clone === undefined) return false
      await this.#context.discardPart(clone.partFd, part)
      return true
    })
  }

  async #stream(source: AsyncIterable<Uint8Array>, options: IngestOptions, signal: AbortSignal): Promise<IngestResult> {
    await requireFreeSpace(this.#context, options.sizeBytes)
    const pull = new StreamReader(source, options.sizeBytes, signal)
    try {
      const head = await pull.upTo(INLINE_BYTES)
      return pull.ended ? await this.#small(head, options, signal) : await this.#large(head, pull, options, signal)
    } catch (error) {
      pull.breakOff()
      throw error
    }
  }

  async #small(bytes: Uint8Array, options: IngestOptions, signal: AbortSignal): Promise<IngestResult> {
    const hasher = await PassHasher.create({ attachments: options.attachments ?? [], sizeBytes: bytes.length })
    hasher.update(bytes)
    const result = hasher.finish()
    options.onProgress?.(bytes.length)
    const part = this.#context.layout.part(randomId())
    return commitBlob(this.#context, { ...result, digest: result.digest! }, { part, bytes }, options, signal)
  }

  #large(head: Uint8Array, pull: StreamReader, options: IngestOptions, signal: AbortSignal): Promise<IngestResult> {
    return this.#streams.run(signal, async () => {
      const part = this.#context.layout.part(randomId())
      const { attachments = [], sizeBytes, onProgress } = options
      const spec = { attachments, sizeBytes, part }
      const { partFd, ...result } = await this.#streamPass(head, pull, spec, onProgress)
      const hashed = { ...result, digest: result.digest! }
      return commitBlob(this.#context, hashed, { part, partFd }, options, signal)
    })
  }

  async #streamPass(
    head: Uint8Array,
    pull: StreamReader,
    spec: SessionSpec,
    onProgress: ((bytes: number) => void) | undefined
  ): Promise<SessionResult> {
    const { thread, release } = this.#context.threads.acquire()
    const session = this.#context.threads.nextSession()
    try {
      await thread.call('begin', { session, spec })
      const blocks = Array.from({ length: STREAM_BLOCKS }, () => new SharedArrayBuffer(STREAM_BLOCK_BYTES))
      const answers: Promise<unknown>[] = []
      let rest: Uint8Array = head
      for (let index = 0; rest.length > 0 || !pull.ended; index = (index + 1) % STREAM_BLOCKS) {
        // the block is free when its last bytes were taken; an error of the thread surfaces here.
        await answers[index]
        const block = blocks[index] as SharedArrayBuffer
        const target = new Uint8Array(block)
        target.set(rest)
        const length = await pull.fill(target, rest.length)
        rest = new Uint8Array(0)
        const answer = thread.call('feed', { session, block, length })
        answer.catch(() => undefined)
        answers[index] = answer
        onProgress?.(pull.bytesTaken)
      }
      await Promise.all(answers)
      return await thread.call('finish', { session })
    } catch (error) {
      await thread.call('drop', { session }).catch(() => undefined)
      throw error
    } finally {
      release()
    }
  }
}
