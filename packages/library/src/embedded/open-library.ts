import { type Lease, withLease } from '@svc/cas'
import { systemClock } from '@svc/internal-clock'
import {
  blobsOf,
  type ImportedModels,
  type LocatedModel,
  type ModelEntry,
  type ModelSource,
  type ReadableModels,
  type VerifyFindings,
  type WorkOptions
} from '@svc/internal-models'
import {
  composeLibrary,
  DocumentReader,
  type Library,
  LibraryError,
  type Log,
  Offload,
  openRef,
  openStore,
  type Resolved,
  TrustRules
} from '@svc/internal-state'
import { formatRepoId, parseDigest, type RepoId } from '@svc/ref'
import { Importer, type ImportRequest } from '../import/importer.ts'
import { isListable } from '../import/model-source.ts'
import { importSelectionOf } from '../import/selection.ts'
import { importTarget } from '../import/target.ts'
import { toolsHere } from '../local/downloads.ts'
import { localSource } from '../local/source.ts'
import { type Collected, type CollectOptions, collect } from '../operations/collect.ts'
import { planEnsure } from '../operations/ensure.ts'
import type { Filler } from '../operations/fill.ts'
import { Room } from '../operations/room.ts'
import { SourcesFiller } from '../operations/sources-filler.ts'
import { verify, verifyTarget } from '../operations/verify.ts'
import type { Work } from '../operations/work.ts'
import { listModels } from './list-models.ts'
import { Operations } from './operations.ts'
import type { OwnedModels } from './owned-models.ts'

/** Which store a library opens. */
export interface LibraryOptions {
  /** The folder of the store; made if it is absent or empty. */
  readonly root: string
  /** Default: nothing is told. */
  readonly log?: Log | undefined
}

/** A description alone is for daemons. */
const NOT_MADE =
  'the source says what, not how: make it with localFiles, hubSource, ociImage, ociLayout or catalogModel'

export const SILENT: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined
}

/**
 * Opens a store in this process, which owns it until `close`.
 * @throws LibraryError `E_LOCKED` while another process owns it; `E_OTHER_STORE`, `E_UNFINISHED_COPY`, `E_ROOT`
 */
export async function openLibrary({ root, log = SILENT }: LibraryOptions): Promise<OwnedModels> {
  const clock = systemClock
  const trust = await TrustRules.open([])
  const store = await openStore({ root }, { clock })
  const threads = { offload: new Offload(), documentReader: new DocumentReader() }
  try {
    const parts = await composeLibrary({ store, trust, clock, log, version: 'library', ...threads })
    return new OpenedLibrary(parts, threads)
  } catch (error) {
    await store.close()
    throw error
  }
}

/** An opened library, for the packages of svc that serve or share its models. */
export interface OpenedParts extends Library {
  readonly running: Operations
  readonly room: Room
  readonly importer: Importer
  /** Has `swarm` asked for what artifacts lack, after the source that they came from; undefined: nobody any more. */
  fillFrom(swarm: Filler | undefined): void
}

/** What a library is made of. @throws LibraryError `E_INVALID` for one that this process did not open with {@link openLibrary} */
export function partsOf(models: OwnedModels): OpenedParts {
  const parts = OpenedLibrary.partsOf(models)
  if (parts === undefined) throw new LibraryError('E_INVALID', 'only a library of openLibrary can be served')
  return parts
}

interface Threads {
  readonly offload: Offload
  readonly documentReader: DocumentReader
}

export class OpenedLibrary implements OwnedModels {
  readonly #parts: Library
  readonly #threads: Threads
  readonly #running = new Operations()
  readonly #importer: Importer
  readonly #room: Room
  #swarm: Filler | undefined
  /** What `open` handed out. */
  readonly #handedOut: Lease
  #closing: Promise<void> | undefined

  constructor(parts: Library, threads: Threads) {
    const { offload } = threads
    this.#parts = parts
    this.#threads = threads
    this.#handedOut = parts.store.lease([])
    this.#room = new Room({ ...parts, limits: { minFreeBytes: 0 }, inBackground: () => undefined })
    this.#importer = new Importer({ ...parts, room: this.#room, offload, strangersOffload: offload })
  }

  /** Undefined for models that this process does not own. */
  static partsOf(models: ReadableModels): OpenedParts | undefined {
    if (!(#parts in models)) return undefined
    const fillFrom: OpenedParts['fillFrom'] = (swarm) => {
      models.#swarm = swarm
    }
    return { ...models.#parts, running: models.#running, room: models.#room, importer: models.#importer, fillFrom }
  }

  get root(): string {
    return this.#parts.store.root
  }

  resolve(ref: string): Promise<Resolved> {
    return this.#parts.resolver.resolve(ref)
  }

  open(ref: string): Promise<LocatedModel> {
    const { store, usage } = this.#parts
    // what is looked up stays until all of it is kept
    return withLease(store, async () => {
      const model = await openRef(ref, this.#parts)
      for (const digest of blobsOf(model)) this.#handedOut.keep(parseDigest(digest))
      usage.note(model.manifestDigest)
      return model
    })
  }

  list(): Promise<readonly ModelEntry[]> {
    return listModels(this.#parts)
  }

  async import(from: ModelSource, as: string, options: WorkOptions = {}): Promise<ImportedModels> {
    const repo = importTarget(as, 'as')
    return this.#running.run('import', options, (work) =>
      withLease(this.#parts.store, async () =>
        this.#importer.run({ repo, ...(await this.#listed(from, repo, work)) }, work)
      )
    )
  }

  async #listed(from: ModelSource, repo: RepoId, work: Work): Promise<Omit<ImportRequest, 'repo'>> {
    if (isListable(from))
      return from.list({ ...this.#parts, room: this.#room, offload: this.#threads.offload }, work, repo)
    if (from.kind !== 'local') throw new LibraryError('E_INVALID', NOT_MADE)
    const { paths, choice = {} } = from
    return {
      source: await localSource(paths, { as: formatRepoId(repo), tools: toolsHere() }),
      selection: importSelectionOf(choice)
    }
  }

  async ensure(ref: string, options: WorkOptions = {}): Promise<LocatedModel> {
    const { store } = this.#parts
    const resolved = await this.resolve(ref)
    const filler = new SourcesFiller({ ...this.#parts, room: this.#room, source: undefined, swarm: this.#swarm })
    const { bring } = await planEnsure(resolved, { ...this.#parts, filler })
    if (bring !== undefined)
      await this.#running.run('ensure', { ...options, manifest: resolved.manifestDigest }, (work) =>
        withLease(store, () => bring(work, {}))
      )
    return this.open(ref)
  }

  async verify(target: string, options: WorkOptions = {}): Promise<VerifyFindings> {
    const what = await verifyTarget(target, this.#parts.resolver)
    return this.#running.run('verify', options, (work) =>
      withLease(this.#parts.store, () => verify(what, this.#parts, work))
    )
  }

  collect(what: CollectOptions = {}, options: WorkOptions = {}): Promise<Collected> {
    return this.#running.run('collect', options, (work) =>
      collect(what, { ...this.#parts, running: this.#running }, work)
    )
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close())
  }

  async #close(): Promise<void> {
    const { store, snapshots, views, usage, trust, readerLeases } = this.#parts
    await this.#running.close()
    this.#handedOut.release()
    await snapshots.close()
    await views.close()
    await usage.close()
    readerLeases.close()
    await Promise.all([...Object.values(this.#threads), trust].map((each) => each.close()))
    await store.close()
  }
}
