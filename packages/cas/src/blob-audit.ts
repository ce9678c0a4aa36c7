import { allOf } from '@svc/internal-concurrency'
import { errnoOf } from '@svc/internal-errors'
import { syncFolder } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { readTwice } from './blob-pass.ts'
import { notFound } from './blob-reader.ts'
import { CasError, ioError, throwIfAborted } from './errors.ts'
import { digestAt, SHARDS } from './layout.ts'
import type { BlobInfo, BlobStore, ScrubReport, VerifyOptions, VerifyResult } from './store.ts'
import type { StoreContext } from './store-context.ts'

const LSTATS_AT_ONCE = 16

/** Lists and re-hashes the blobs of a disk store. */
export class BlobAudit {
  readonly #context: StoreContext

  constructor(context: StoreContext) {
    this.#context = context
  }

  /** Sorted by digest; holds the names of one shard in memory at a time. Files that are not blobs are skipped. */
  async *list(): AsyncGenerator<BlobInfo, void, undefined> {
    const { port, layout } = this.#context
    this.#context.throwIfClosed()
    this.#context.guard.requireRoot()
    for (const shard of SHARDS) {
      const folder = `${layout.blobs}/${shard}`
      const digests = (await this.#readdir(folder)).sort().flatMap((name) => digestAt(shard, name) ?? [])
      for (let i = 0; i < digests.length; i += LSTATS_AT_ONCE) {
        this.#context.throwIfClosed()
        const found = await Promise.all(
          digests.slice(i, i + LSTATS_AT_ONCE).map(async (digest) => {
            try {
              const stat = await port.lstat(layout.blob(digest))
              return stat.isFile() ? { digest, sizeBytes: stat.size } : undefined
            } catch (error) {
              if (errnoOf(error) !== 'ENOENT') throw ioError(error, 'list blobs', layout.blob(digest))
              this.#context.guard.requireFolderFor(layout.blob(digest))
              return undefined
            }
          })
        )
        for (const info of found) if (info !== undefined) yield info
      }
    }
  }

  /** Every store has this folder. @throws CasError `E_STORE_GONE`, `E_IO` */
  async #readdir(path: string): Promise<string[]> {
    try {
      return await this.#context.port.readdir(path)
    } catch (error) {
      this.#context.guard.requireFolderFor(`${path}/`)
      throw ioError(error, 'list blobs', path)
    }
  }

  verify(digest: Sha256Digest, options: VerifyOptions = {}): Promise<VerifyResult> {
    this.#context.leases.touch(digest)
    return this.#context.run(options.signal, (signal) => this.#verify(digest, options, signal))
  }

  async #verify(digest: Sha256Digest, options: VerifyOptions, signal: AbortSignal): Promise<VerifyResult> {
    const { layout } = this.#context
    const path = layout.blob(digest)
    try {
      const pass = await readTwice(this.#context, digest, options, signal)
      const { sizeBytes, attachments } = pass
      if (pass.digest === digest) return { status: 'ok', sizeBytes, attachments }
      await this.#moveAside(digest, pass)
      return { status: 'mismatched', sizeBytes, attachments: {} }
    } catch (error) {
      if (!(error instanceof CasError)) throw error
      if (error.code === 'E_NOT_FOUND') {
        this.#context.guard.requireFolderFor(path)
        return { status: 'missing', sizeBytes: 0, attachments: {} }
      }
      if (error.code !== 'E_CORRUPT') throw error
      await this.#moveAside(digest, undefined)
      return { status: 'mismatched', sizeBytes: 0, attachments: {} }
    }
  }

  /** Moves a corrupt file to quarantine, durably, unless another file has taken its name in the meantime. */
  async #moveAside(
    digest: Sha256Digest,
    file: { readonly dev: number; readonly ino: number } | undefined
  ): Promise<void> {
    const { port, layout, digestLocks } = this.#context
    const path = layout.blob(digest)
    try {
      await digestLocks.run(digest, undefined, async () => {
        const stat = await port.lstat(path)
        if (file === undefined ? stat.isFile() : stat.dev !== file.dev || stat.ino !== file.ino) return
        await port.rename(path, layout.aside(digest))
        await syncFolder(port, layout.quarantine)
        await syncFolder(port, layout.shard(digest))
      })
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw ioError(error, 'move a corrupt blob aside', path)
    }
  }

  /** Uses all threads. Unreadable blobs are reported as one failure at the end, after all others have been checked. */
  async scrub(options: Parameters<BlobStore['scrub']>[0] = {}): Promise<ScrubReport> {
    return this.#context.run(options.signal, async (signal) => {
      let [blobs, bytes, blobsTotal, bytesTotal] = [0, 0, 0, 0]
      const tell = (more: number): void => {
        bytes += more
        options.onProgress?.({
          blobs,
          bytes,
          blobsTotal: Math.max(blobs, blobsTotal),
          bytesTotal: Math.max(bytes, bytesTotal)
        })
      }
      for await (const { sizeBytes } of this.list()) {
        throwIfAborted(signal)
        blobsTotal++
        bytesTotal += sizeBytes
      }
      const mismatched: Sha256Digest[] = []
      const unreadable: Sha256Digest[] = []
      let failure: unknown
      const one = async (digest: Sha256Digest): Promise<void> => {
        let told = 0
        const onProgress = (done: number): void => {
          tell(done - told)
          told = done
        }
        try {
          const { status } = await this.#verify(digest, { onProgress }, signal)
          if (status === 'missing') throw notFound(digest)
          if (status === 'mismatched') mismatched.push(digest)
        } catch (error) {
          if (signal.aborted) return
          // deleted since the listing: nothing to check.
          if (error instanceof CasError && error.code === 'E_NOT_FOUND') return
          unreadable.push(digest)
          failure ??= error
        }
        blobs++
        tell(0)
      }
      const listed = this.list()
      const lane = async (): Promise<void> => {
        for await (const { digest } of listed) {
          if (signal.aborted) break
          await one(digest)
        }
      }
      // more than there are threads, so that the next file is already open when a thread becomes free.
      await allOf(Array.from({ length: this.#context.threads.hashThreads * 2 }, lane))
      throwIfAborted(signal)
      mismatched.sort()
      if (unreadable.length > 0) {
        throw new CasError(
          'E_IO',
          `${unreadable.length} blobs could not be read, e.g. ${unreadable[0]}`,
          { unreadable, mismatched },
          failure
        )
      }
      return { checked: blobs, mismatched }
    })
  }
}
