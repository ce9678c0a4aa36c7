import { errnoOf } from '@svc/internal-errors'
import { syncFolder } from '@svc/internal-files'
import type { Sha256Digest } from '@svc/ref'
import { readTwice } from './blob-pass.ts'
import { CasError, ioError } from './errors.ts'
import { digestAt, SHARDS } from './layout.ts'
import { Scrub, type ScrubbedBlobs } from './scrub.ts'
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

  /** Uses all threads. @throws CasError `E_IO` for blobs that cannot be read, after all others have been checked */
  async scrub(options: Parameters<BlobStore['scrub']>[0] = {}): Promise<ScrubReport> {
    const blobs: ScrubbedBlobs = {
      list: () => this.list(),
      verify: (digest, wanted, signal) => this.#verify(digest, wanted, signal)
    }
    // more than there are threads, so that the next file is already open when a thread becomes free.
    const lanes = this.#context.threads.hashThreads * 2
    return this.#context.run(options.signal, (signal) => new Scrub(blobs, signal, options.onProgress).run(lanes))
  }
}
