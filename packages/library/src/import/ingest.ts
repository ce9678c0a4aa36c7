import { createHash } from 'node:crypto'
import { type BlobInfo, CasError, type DiskBlobStore, type IngestResult, type PartialBlob } from '@svc/cas'
import {
  type FileUse,
  type LicenceFact,
  MAX_CONFIG_BYTES,
  MAX_LICENCE_BYTES,
  type ManifestEntry,
  writeTar
} from '@svc/classify'
import { forEachLimited, Gate } from '@svc/internal-concurrency'
import { type BlobTree, LEAVES, type Library, LibraryError, readSmallBlob, type WantedBlobs } from '@svc/internal-state'
import { digestFromBytes } from '@svc/ref'
import type { Room } from '../operations/room.ts'
import { fetchedAnew } from './companions.ts'
import { filesToRead, type PlannedImport } from './plan.ts'
import type { ImportProgress } from './progress.ts'
import type { Proof } from './proof.ts'
import { type FileHere, type HeldName, isRemote, type RemoteFile, readAs, type SourceFile } from './source.ts'
import { acceptOf, fetchRemote, localBytes, stagedBytes } from './staged.ts'

/** The result of stage 2: the blobs, and the texts that were read on the side. */
export interface Ingested {
  /** By entry name. */
  readonly blobs: ReadonlyMap<string, BlobTree>
  /** By upstream name; unreadable local files are absent. */
  readonly companions: ReadonlyMap<string, BlobTree>
  /** Bytes of the root `config.json`; `tooLarge` if it was not read; absent if there is none. */
  readonly config: Uint8Array | 'tooLarge' | undefined
  readonly licences: readonly LicenceFact[]
}

export interface IngestContext extends Pick<Library, 'store' | 'leafLayers' | 'wanted'> {
  readonly progress: ImportProgress
  readonly proof: Proof
  readonly room: Pick<Room, 'shortBytes' | 'require'>
  /** The owner agreed to evictions if space is short. */
  readonly mayEvict: boolean
  readonly signal: AbortSignal
  /** Called when everything is here but large files whose digests the source has listed. */
  readonly onDescribed?: ((described: Ingested, signal: AbortSignal) => Promise<void>) | undefined
}

/** Space for documents and leaf layers of an import, besides its files. */
const SPARE_BYTES = 1 << 20

/**
 * Brings every file of a plan into the store, reading each once; members of tars, `config.json` and licence texts are
 * read on the side. @throws LibraryError `E_NO_SPACE` before the first byte; errors of the source and the store
 */
export async function ingestFiles(plan: PlannedImport, context: IngestContext): Promise<Ingested> {
  const { source, recognition } = plan
  await requireSpace(plan, context)
  const work = new FileIngest(plan, context)
  // files that describe the model first, then the largest
  const inOrder = filesToRead(plan)
    .map(([name, use]) => work.used(name, use))
    .sort((a, b) => Number(describes(b)) - Number(describes(a)) || b.file.sizeBytes - a.file.sizeBytes)
  const passed = recognition.uses.size - inOrder.length
  if (passed > 0) context.progress.pass(passed)
  const units = groupSmall(inOrder)
  const left = new Set(units)
  const describing = new Set(units.filter((unit) => unit.some(describes)))
  let described: Ingested | undefined
  const describe = async (signal: AbortSignal): Promise<void> => {
    const tars = recognition.entries.filter((entry) => entry.content.from === 'tar')
    await forEachLimited(tars, 2, signal, (entry, signal) => work.tar(entry, signal))
    described = { blobs: work.blobs, companions: work.companions, ...(await work.texts(signal)) }
    await context.onDescribed?.(described, signal)
  }
  if (describing.size === 0) await describe(context.signal)
  await forEachLimited(units, source.concurrency, context.signal, async (_, signal) => {
    const unit = firstOf(left, context.wanted)
    left.delete(unit)
    await work.take(unit, signal)
    if (describing.delete(unit) && describing.size === 0) await describe(signal)
  })
  return described!
}

/** The hub keeps files with other names in large-file storage from this size on. */
const LARGE_BYTES = 10 << 20

/** The documents that say which files an artifact has. */
const describes = ({ file, use, keep }: UsedFile): boolean =>
  use.use === 'entry'
    ? file.digest === undefined || !(file.sizeBytes > LARGE_BYTES || /\.(?:gguf|safetensors)$/.test(use.entry))
    : use.use !== 'skip' || keep !== undefined

/** Blobs that are here, ranges of an earlier attempt, and files whose blocks the store can share take no space. */
async function requireSpace({ recognition, files, companions }: PlannedImport, context: IngestContext): Promise<void> {
  const { store, signal, room, mayEvict } = context
  let needed = SPARE_BYTES
  for (const { sizeBytes } of companions.files.values()) needed += sizeBytes
  const here: FileHere[] = []
  for (const entry of recognition.entries) {
    const file = entry.content.from === 'file' ? files.get(entry.content.name)! : undefined
    if (file?.digest !== undefined && (await store.stat(file.digest)) !== undefined) continue
    if (file !== undefined && !isRemote(file)) here.push(file)
    const key = file?.digest ?? file?.partialKey
    needed += Math.max(0, entry.sizeBytes - (key === undefined ? 0 : (store.partialStatus(key)?.writtenBytes ?? 0)))
  }
  // space is rarely short: only then are files tried
  if (here.length > 0 && (await room.shortBytes(needed)) > 0)
    for (const file of here) if (await isShareable(file, store, signal)) needed -= file.sizeBytes
  await room.require(needed, { mayEvict, signal })
}

async function isShareable(file: FileHere, store: DiskBlobStore, signal: AbortSignal): Promise<boolean> {
  const opened = await file.open(signal)
  try {
    return await store.sharesBlocks({ fd: opened.fd })
  } finally {
    await opened.close()
  }
}

/** Files that readers wait for come first. */
function firstOf(units: ReadonlySet<readonly UsedFile[]>, wanted: WantedBlobs): readonly UsedFile[] {
  const rankOf = (unit: readonly UsedFile[]): number =>
    Math.min(...unit.map(({ file }) => wanted.rankOf(readAs(file)) ?? Infinity))
  return [...units].reduce((first, unit) => (rankOf(unit) < rankOf(first) ? unit : first))
}

const holdNameOf = (file: SourceFile): FileHere['holdName'] => (isRemote(file) ? undefined : file.holdName)

interface UsedFile {
  readonly file: SourceFile
  readonly use: FileUse
  /** For files that become blobs. */
  readonly keep?: (tree: BlobTree) => void
}

/** Groups of small files whose folders are held open: one more than the store takes at a time. */
const GROUPS = 5

/** The owner's file cannot be opened, is no longer a file, or changes while it is read. */
const isUnreadable = (error: unknown): boolean =>
  error instanceof LibraryError && ['E_IO', 'E_NOT_IMPORTABLE', 'E_SOURCE_NOT_REGULAR'].includes(error.code)

class FileIngest {
  readonly blobs = new Map<string, BlobTree>()
  readonly companions = new Map<string, BlobTree>()
  readonly #groups = new Gate(GROUPS)
  readonly #plan: PlannedImport
  readonly #context: IngestContext

  constructor(plan: PlannedImport, context: IngestContext) {
    this.#plan = plan
    this.#context = context
  }

  used(name: string, use: FileUse): UsedFile {
    const file = this.#plan.files.get(name)!
    const companion = this.#plan.companions.files.get(name)
    if (use.use === 'entry') return { file, use, keep: (tree) => void this.blobs.set(use.entry, tree) }
    if (companion === undefined) return { file, use }
    const anew = fetchedAnew(companion, this.#plan.source.origin)
    return { file: anew, use, keep: (tree) => void this.companions.set(name, tree) }
  }

  /** Handles an upstream file, or a group of small ones. */
  async take(unit: readonly UsedFile[], signal: AbortSignal): Promise<void> {
    if (unit.length > 1) return this.#groups.run(signal, () => this.#small(unit, signal))
    for (const used of unit) await this.#one(used, signal)
  }

  /** Takes one file according to its use; members and texts that are on this machine are read later. */
  async #one({ file, use, keep }: UsedFile, signal: AbortSignal): Promise<void> {
    const { progress } = this.#context
    if (keep === undefined && !isRemote(file)) return
    progress.start(file)
    try {
      if (keep !== undefined) keep(await this.#blob(file, signal))
      else if (isRemote(file)) await this.#stage(file, use.use === 'skip', signal)
    } catch (error) {
      // a skip is never an error (spec rec.2)
      if (use.use !== 'skip' || isRemote(file) || !isUnreadable(error)) throw error
    }
    progress.finish(file.name)
  }

  /** The store opens small files itself. Those that it cannot take are opened one by one, which reports why. */
  async #small(files: readonly UsedFile[], signal: AbortSignal): Promise<void> {
    const { store, leafLayers, progress, proof } = this.#context
    progress.start(...files.map(({ file }) => file))
    const held: { readonly used: UsedFile; readonly name: HeldName }[] = []
    const taken: string[] = []
    const rest: UsedFile[] = []
    try {
      for (const used of files) {
        const name = await holdNameOf(used.file)!().catch(() => undefined)
        if (name === undefined) rest.push(used)
        else held.push({ used, name })
      }
      const accept = ({ digest }: BlobInfo): Promise<void> => proof.own(digest)
      const options = { attachments: [LEAVES], signal, accept }
      const outcomes = await store.ingestNamed(
        held.map(({ name }) => name.source),
        options
      )
      for (const [i, { used }] of held.entries()) {
        const outcome = outcomes[i]!
        if (outcome instanceof CasError) rest.push(used)
        else {
          used.keep!(await leafLayers.keep(outcome))
          taken.push(used.file.name)
        }
      }
    } finally {
      for (const { name } of held) await name.release()
    }
    progress.finish(...taken)
    signal.throwIfAborted()
    for (const used of rest) await this.#one(used, signal)
  }

  async tar(entry: ManifestEntry, signal: AbortSignal): Promise<void> {
    const { store, leafLayers } = this.#context
    if (entry.content.from !== 'tar') return
    const members = entry.content.members.map(({ name, from, sizeBytes }) => ({
      name,
      sizeBytes,
      open: () => this.#bytes(this.#plan.files.get(from)!, signal)
    }))
    const result = await store.ingest(writeTar(members), { sizeBytes: entry.sizeBytes, attachments: [LEAVES], signal })
    this.blobs.set(entry.name, await leafLayers.keep(result))
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
    const isKept = file.sizeBytes <= maxBytes
    // the text of a licence may be a file of the artifact, too
    const digest = (this.companions.get(file.name) ?? this.blobs.get(file.name))?.digest
    if (digest !== undefined)
      return { digest, bytes: isKept ? await readSmallBlob(this.#context.store, digest) : undefined }
    const hash = createHash('sha256')
    const chunks: Uint8Array[] = []
    for await (const chunk of this.#bytes(file, signal)) {
      hash.update(chunk)
      if (isKept) chunks.push(chunk)
    }
    const bytes = isKept ? new Uint8Array(Buffer.concat(chunks)) : undefined
    return { digest: digestFromBytes(hash.digest()), bytes }
  }

  async #blob(file: SourceFile, signal: AbortSignal): Promise<BlobTree> {
    const { store, leafLayers, proof } = this.#context
    const present = async (): Promise<BlobTree | undefined> => {
      if (file.digest === undefined) return undefined
      const found = await store.stat(file.digest)
      if (found?.sizeBytes !== file.sizeBytes) return undefined
      proof.took(file)
      return file.tree ?? leafLayers.treeOf(file.digest, signal)
    }
    const already = await present()
    if (already !== undefined) return already
    if (!isRemote(file)) return leafLayers.keep(await this.#ingestHere(file, signal))
    const settle = async (partial: PartialBlob): Promise<BlobTree> => {
      const tree = await leafLayers.keep(await partial.commit({ accept: acceptOf(file) }))
      await proof.committed(file)
      return tree
    }
    return fetchRemote(file, { ...this.#context, signal }, { attachments: [LEAVES], present, settle })
  }

  async #ingestHere(file: FileHere, signal: AbortSignal): Promise<IngestResult> {
    const { store, progress, proof } = this.#context
    const opened = await file.open(signal)
    try {
      return await store.ingest(
        { fd: opened.fd },
        {
          sizeBytes: file.sizeBytes,
          attachments: [LEAVES, ...(file.attachments ?? [])],
          signal,
          onProgress: (bytesDone) => progress.advance(file.name, bytesDone),
          accept: async (result) => {
            await opened.unchanged()
            await file.accept?.(result)
            await proof.own(result.digest)
          },
          ...(file.digest !== undefined && { digest: file.digest })
        }
      )
    } catch (error) {
      // a file that grew or shrank fails with its size: report the change instead
      if (!signal.aborted) await opened.unchanged()
      throw error
    } finally {
      await opened.close()
    }
  }

  async #stage(file: RemoteFile, drop: boolean, signal: AbortSignal): Promise<void> {
    const settle = async (partial: PartialBlob): Promise<void> => {
      await acceptOf(file)(await partial.verify())
      await (drop ? partial.discard() : partial.release())
    }
    await fetchRemote(file, { ...this.#context, signal }, { settle })
  }

  /** All bytes of a member or text. A local file is read, and counted, only now. */
  async *#bytes(file: SourceFile, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const { progress, proof } = this.#context
    if (isRemote(file)) return yield* stagedBytes(file, { ...this.#context, signal })
    signal.throwIfAborted()
    if (file.stored?.isSeen === false) proof.took(file)
    progress.start(file)
    let done = 0
    for await (const chunk of localBytes(file, await file.open(signal))) {
      signal.throwIfAborted()
      yield chunk
      done += chunk.length
      progress.advance(file.name, done)
    }
    progress.finish(file.name)
  }
}

/** Small files that go to the store together: few messages for many files, and little to repeat after a failure. */
const MAX_GROUP_FILES = 64
const MAX_GROUP_BYTES = 8 << 20

/** Groups small files; each other file is a group of its own. Groups are in the order of their first files. */
function groupSmall(files: readonly UsedFile[]): readonly (readonly UsedFile[])[] {
  const groups: UsedFile[][] = []
  let open: UsedFile[] | undefined
  let openBytes = 0
  for (const used of files) {
    const { file, keep } = used
    if (keep === undefined || holdNameOf(file) === undefined) {
      groups.push([used])
      continue
    }
    if (open === undefined || open.length === MAX_GROUP_FILES || openBytes + file.sizeBytes > MAX_GROUP_BYTES) {
      groups.push((open = []))
      openBytes = 0
    }
    open.push(used)
    openBytes += file.sizeBytes
  }
  return groups
}
