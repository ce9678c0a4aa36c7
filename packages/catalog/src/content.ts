import type { BlobReader, BlobStore, ByteRanges, HashResult, PartialBlob } from '@svc/cas'
import { LEAVES, LibraryError, type Proof } from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import { GIT_NAME, gitNameIn } from '@svc/sources/hub/parts'
import type { AnchorFile } from './anchor.ts'

/** A file that a pull brings. */
export interface WantedFile {
  readonly path: string
  readonly sizeBytes: number
  readonly anchor: AnchorFile
  /** Of its content, which other files may have, too. */
  readonly key: string
}

export function wantedFile(path: string, sizeBytes: number, anchor: AnchorFile): WantedFile {
  // bytes from another repository must not count as this one's
  const repo = anchor.repoId?.toLowerCase() ?? ''
  return { path, sizeBytes, anchor, key: anchor.sha256 ?? `git-blob-sha1:${anchor.gitBlobSha1} ${repo}` }
}

/**
 * The bytes of one content while several sources fetch it: each writes the ranges still missing. A content that the
 * store has is read from there. It becomes a blob only through {@link commit}, after {@link verify} compared it with
 * the anchor.
 */
export class AnchoredContent {
  /** The first torrent that has it. */
  readonly file: WantedFile
  readonly #reader: BlobReader | undefined
  readonly #partial: PartialBlob | undefined
  /** The pull's source gave all bytes, as far as this is noted. */
  readonly isSeen: boolean
  #turn: Promise<unknown> = Promise.resolve()
  #checkpointed = 0

  private constructor(
    file: WantedFile,
    reader: BlobReader | undefined,
    partial: PartialBlob | undefined,
    isSeen: boolean
  ) {
    this.file = file
    this.isSeen = isSeen
    this.#reader = reader
    this.#partial = partial
  }

  static async open(store: BlobStore, file: WantedFile, proof: Proof, signal: AbortSignal): Promise<AnchoredContent> {
    const { path: name, key, sizeBytes, anchor } = file
    const { sha256, gitBlobSha1 } = anchor
    const here = async (): Promise<AnchoredContent | undefined> =>
      sha256 && (await store.stat(sha256))
        ? new AnchoredContent(file, await store.open(sha256), undefined, false)
        : undefined
    const already = await here()
    if (already !== undefined) return already
    const partial = await store.partial(
      { key, sizeBytes, ...(sha256 && { digest: sha256 }) },
      { attachments: gitBlobSha1 ? [LEAVES, GIT_NAME] : [LEAVES], signal }
    )
    // another import may have committed it while this one waited for the key
    const meanwhile = await here()
    if (meanwhile !== undefined) {
      await partial.discard()
      return meanwhile
    }
    const isSeen = await proof.begin({ name, digest: sha256 }, { isEmpty: partial.ranges().length === 0 })
    return new AnchoredContent(file, undefined, partial, isSeen)
  }

  get sizeBytes(): number {
    return this.file.sizeBytes
  }

  ranges(): ByteRanges {
    if (this.#partial) return this.#partial.ranges()
    return this.sizeBytes === 0 ? [] : [[0, this.sizeBytes]]
  }

  get bytesDone(): number {
    return this.ranges().reduce((sum, [start, end]) => sum + end - start, 0)
  }

  get complete(): boolean {
    return this.bytesDone === this.sizeBytes
  }

  has(start: number, end: number): boolean {
    return this.ranges().some(([from, to]) => from <= start && end <= to)
  }

  async read(offset: number, target: Uint8Array): Promise<void> {
    const from = this.#reader ?? this.#partial!
    const count = await from.read(target, offset)
    if (count !== target.length) throw new RangeError(`read ${count} of ${target.length} bytes at ${offset}`)
  }

  /** Writes the missing ranges of `bytes`: sources overlap, and bytes that were written may already be hashed. */
  write(offset: number, bytes: Uint8Array): Promise<void> {
    const turn = this.#turn.then(() => this.#write(offset, bytes))
    this.#turn = turn.catch(() => {})
    return turn
  }

  async #write(offset: number, bytes: Uint8Array): Promise<void> {
    if (!this.#partial) return
    const end = offset + bytes.length
    let at = offset
    for (const [from, to] of [...this.#partial.ranges(), [end, end] as const]) {
      if (to <= at) continue
      if (from > at) {
        const until = Math.min(from, end)
        await this.#partial.write(at, bytes.subarray(at - offset, until - offset))
      }
      at = Math.max(at, to)
      if (at >= end) break
    }
  }

  unmark(start: number, end: number): void {
    this.#partial?.unmark(start, end)
  }

  /** Everything written so far survives a crash after this. */
  async checkpoint(): Promise<void> {
    if (!this.#partial || this.bytesDone === this.#checkpointed) return
    const bytes = this.bytesDone
    await this.#partial.checkpoint()
    this.#checkpointed = bytes
  }

  /** Hashes the rest and compares. @throws CasError `E_DIGEST_MISMATCH`, LibraryError `E_NOT_IMPORTABLE` (git hash). */
  async verify(): Promise<void> {
    if (!this.#partial) return
    this.#checkGit(await this.#partial.verify())
  }

  /** @returns the digest, and the hashes, the leaf layer among them, if they were computed here. Closes the content. */
  async commit(): Promise<{ readonly digest: Sha256Digest; readonly hashes: HashResult | undefined }> {
    if (!this.#partial) {
      const { digest } = this.#reader!
      await this.#reader!.close()
      return { digest, hashes: undefined }
    }
    const hashes = await this.#partial.commit({ accept: (result) => this.#checkGit(result) })
    return { digest: hashes.digest, hashes }
  }

  /** Keeps the fetched bytes for the next attempt. Idempotent. */
  async release(): Promise<void> {
    await this.#reader?.close()
    await this.#partial?.release()
  }

  #checkGit(result: HashResult): void {
    const expected = this.file.anchor.gitBlobSha1
    if (expected === undefined || gitNameIn(result) === expected) return
    this.#partial!.unmark(0, this.sizeBytes)
    throw new LibraryError('E_NOT_IMPORTABLE', 'the bytes do not match the anchor')
  }
}
