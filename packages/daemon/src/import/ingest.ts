import { createHash } from 'node:crypto'
import type { DiskBlobStore, IngestResult } from '@svc/cas'
import {
  type Entry,
  type FileUse,
  type LicenceFact,
  MAX_CONFIG_BYTES,
  MAX_LICENCE_BYTES,
  writeTar
} from '@svc/classify'
import { forEachLimited } from '@svc/internal-concurrency'
import { digestFromBytes } from '@svc/ref'
import { noSpace } from '../errors.ts'
import { type BlobTree, LEAVES, type LeafLayers } from '../library/leaf-layers.ts'
import type { PlannedImport } from './plan.ts'
import type { ImportProgress } from './progress.ts'
import type { OpenedFile, SourceFile } from './source.ts'
import { acceptOf, fetchRemote, localBytes, stagedBytes } from './staged.ts'

/** The result of stage 2: the blobs, and the texts that were read on the side. */
export interface Ingested {
  /** By entry name. */
  readonly blobs: ReadonlyMap<string, BlobTree>
  /** Bytes of the root `config.json`; `tooLarge` if it was not read; absent if there is none. */
  readonly config: Uint8Array | 'tooLarge' | undefined
  readonly licences: readonly LicenceFact[]
}

export interface IngestContext {
  readonly store: DiskBlobStore
  readonly leafLayers: LeafLayers
  readonly progress: ImportProgress
  readonly signal: AbortSignal
}

/** Space for documents and leaf layers of an import, besides its files. */
const SPARE_BYTES = 1 << 20

/**
 * Brings every file of a plan into the store, reading each once: entries become blobs; members of tars, `config.json`
 * and licence texts are read on the side. @throws DaemonError `E_NO_SPACE` before the first byte if there is not enough
 * space; errors of the source and the store
 */
export async function ingestFiles(plan: PlannedImport, context: IngestContext): Promise<Ingested> {
  const { source, recognition, files } = plan
  await requireSpace(plan, context)
  const work = new FileIngest(plan, context)
  const passed = source.fetchUnrecognised ? 0 : recognition.skipped.length
  if (passed > 0) context.progress.pass(passed)
  const largestFirst = [...recognition.uses]
    .filter(([, { use }]) => use !== 'skip' || source.fetchUnrecognised)
    .map(([name, use]) => ({ file: files.get(name)!, use }))
    .sort((a, b) => b.file.sizeBytes - a.file.sizeBytes)
  await forEachLimited(largestFirst, source.concurrency, context.signal, ({ file, use }, signal) =>
    work.take(file, use, signal)
  )
  const tars = recognition.entries.filter((entry) => entry.content.from === 'tar')
  await forEachLimited(tars, 2, context.signal, (entry, signal) => work.tar(entry, signal))
  return { blobs: work.blobs, ...(await work.texts(context.signal)) }
}

/**
 * Checks the space for what has to be written: excludes blobs that the store has, ranges from an earlier attempt, and
 * files whose blocks the store can share.
 */
async function requireSpace({ source, recognition, files }: PlannedImport, context: IngestContext): Promise<void> {
  const { store, signal } = context
  let needed = SPARE_BYTES
  const whole: SourceFile[] = []
  for (const entry of recognition.entries) {
    const file = entry.content.from === 'file' ? files.get(entry.content.name)! : undefined
    if (file?.digest !== undefined && (await store.stat(file.digest)) !== undefined) continue
    if (file !== undefined) whole.push(file)
    const key = file?.digest ?? file?.partialKey
    needed += Math.max(0, entry.sizeBytes - (key === undefined ? 0 : store.partialBytes(key)))
  }
  const free = await store.freeBytes()
  // rare, so files are tried only now
  if (needed > free && source.kind === 'local') {
    for (const file of whole) if (await isShareable(file, store, signal)) needed -= file.sizeBytes
  }
  if (needed <= free) return
  throw noSpace(needed, free)
}

async function isShareable(file: SourceFile, store: DiskBlobStore, signal: AbortSignal): Promise<boolean> {
  const opened = await file.open(signal)
  try {
    return opened.kind === 'file' && (await store.sharesBlocks({ fd: opened.fd }))
  } finally {
    await opened.close()
  }
}

class FileIngest {
  readonly blobs = new Map<string, BlobTree>()
  readonly #plan: PlannedImport
  readonly #context: IngestContext

  constructor(plan: PlannedImport, context: IngestContext) {
    this.#plan = plan
    this.#context = context
  }

  /** Handles one upstream file according to its use; members and texts of local files are read later. */
  async take(file: SourceFile, use: FileUse, signal: AbortSignal): Promise<void> {
    const { progress } = this.#context
    const remote = this.#plan.source.kind !== 'local'
    if (use.use !== 'entry' && !remote) return
    progress.start(file.name, file.sizeBytes)
    if (use.use === 'entry') this.blobs.set(use.entry, await this.#blob(file, signal))
    else await this.#stage(file, use.use === 'skip', signal)
    progress.finish(file.name)
  }

  /** Writes a tar from its members' bytes. */
  async tar(entry: Entry, signal: AbortSignal): Promise<void> {
    const { store, leafLayers } = this.#context
    if (entry.content.from !== 'tar') return
    const members = entry.content.members.map(({ name, from, sizeBytes }) => ({
      name,
      sizeBytes,
      open: () => this.#bytes(this.#plan.files.get(from)!, signal)
    }))
    const result = await store.ingest(writeTar(members), { sizeBytes: entry.sizeBytes, attachments: [LEAVES], signal })
    this.blobs.set(entry.name, await leafLayers.keep(result.digest, result.sizeBytes, result.attachments[LEAVES.name]!))
  }

  /** `config.json` and the licence texts. */
  async texts(signal: AbortSignal): Promise<Pick<Ingested, 'config' | 'licences'>> {
    const { recognition, files } = this.#plan
    let config: Ingested['config']
    if (recognition.config !== undefined) {
      const { bytes } = await this.#text(files.get(recognition.config.name)!, MAX_CONFIG_BYTES, signal)
      config = bytes ?? 'tooLarge'
    }
    const licences: LicenceFact[] = []
    for (const { name } of recognition.licences) {
      const { bytes, digest } = await this.#text(files.get(name)!, MAX_LICENCE_BYTES, signal)
      licences.push({ name, digest, bytes })
    }
    return { config, licences }
  }

  async #text(file: SourceFile, maxBytes: number, signal: AbortSignal): Promise<Pick<LicenceFact, 'bytes' | 'digest'>> {
    const hash = createHash('sha256')
    const chunks: Uint8Array[] = []
    for await (const chunk of this.#bytes(file, signal)) {
      hash.update(chunk)
      if (file.sizeBytes <= maxBytes) chunks.push(chunk)
    }
    const bytes = file.sizeBytes <= maxBytes ? new Uint8Array(Buffer.concat(chunks)) : undefined
    return { digest: digestFromBytes(hash.digest()), bytes }
  }

  async #blob(file: SourceFile, signal: AbortSignal): Promise<BlobTree> {
    const { store, leafLayers, progress } = this.#context
    const onProgress = (bytesDone: number): void => progress.advance(file.name, bytesDone)
    const present = async (): Promise<BlobTree | undefined> => {
      if (file.digest === undefined) return undefined
      const found = await store.stat(file.digest)
      return found?.sizeBytes === file.sizeBytes ? leafLayers.treeOf(file.digest, signal) : undefined
    }
    const keep = ({ digest, sizeBytes, attachments }: IngestResult): Promise<BlobTree> =>
      leafLayers.keep(digest, sizeBytes, attachments[LEAVES.name]!)
    const already = await present()
    if (already !== undefined) return already
    const named = await this.#ingestNamed(file, signal, onProgress)
    if (named !== undefined) return await keep(named)
    const opened = await file.open(signal)
    try {
      if (opened.kind === 'file') return await keep(await this.#ingestLocal(file, opened, signal, onProgress))
      const options = { store, attachments: [LEAVES], signal, onProgress, onWaiting: progress.wait, present }
      return await fetchRemote(file, opened, options, async (partial) =>
        keep(await partial.publish({ accept: acceptOf(file) }))
      )
    } finally {
      await opened.close()
    }
  }

  /** Undefined if the file has to be opened instead, to read it or to find out why it cannot be read. */
  async #ingestNamed(
    file: SourceFile,
    signal: AbortSignal,
    onProgress: (bytesDone: number) => void
  ): Promise<IngestResult | undefined> {
    if (file.named === undefined) return undefined
    const { name, sizeBytes, digest, accept, attachments = [] } = file
    if (accept !== undefined || digest !== undefined)
      throw new Error(`nothing is known of a local file beforehand: ${name}`)
    const options = { sizeBytes, attachments: [LEAVES, ...attachments], signal, onProgress }
    return file
      .named((source) => this.#context.store.ingest(source, options))
      .catch(() => {
        signal.throwIfAborted()
        return undefined
      })
  }

  async #ingestLocal(
    file: SourceFile,
    opened: Extract<OpenedFile, { kind: 'file' }>,
    signal: AbortSignal,
    onProgress: (bytesDone: number) => void
  ): Promise<IngestResult> {
    try {
      return await this.#context.store.ingest(
        { fd: opened.fd },
        {
          sizeBytes: file.sizeBytes,
          attachments: [LEAVES, ...(file.attachments ?? [])],
          signal,
          onProgress,
          accept: async (result) => {
            await opened.unchanged()
            await file.accept?.(result)
          },
          ...(file.digest !== undefined && { digest: file.digest })
        }
      )
    } catch (error) {
      // a file that grew or shrank fails with its size: report the change instead
      if (!signal.aborted) await opened.unchanged()
      throw error
    }
  }

  async #stage(file: SourceFile, drop: boolean, signal: AbortSignal): Promise<void> {
    const { store, progress } = this.#context
    const opened = await file.open(signal)
    if (opened.kind === 'file') return opened.close()
    const onProgress = (bytesDone: number): void => progress.advance(file.name, bytesDone)
    try {
      await fetchRemote(
        file,
        opened,
        { store, attachments: [], signal, onProgress, onWaiting: progress.wait },
        async (partial) => {
          await acceptOf(file)(await partial.verify())
          await (drop ? partial.discard() : partial.release())
        }
      )
    } finally {
      await opened.close()
    }
  }

  /** All bytes of a member or text; counts a local file, which was not read before. */
  async *#bytes(file: SourceFile, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { store, progress } = this.#context
    if (this.#plan.source.kind !== 'local') return yield* stagedBytes(file, { store, signal, onWaiting: progress.wait })
    signal.throwIfAborted()
    progress.start(file.name, file.sizeBytes)
    const opened = await file.open(signal)
    if (opened.kind !== 'file') throw new Error('a local source gives local files')
    let done = 0
    for await (const chunk of localBytes(file, opened)) {
      signal.throwIfAborted()
      yield chunk
      done += chunk.length
      progress.advance(file.name, done)
    }
    progress.finish(file.name)
  }
}
