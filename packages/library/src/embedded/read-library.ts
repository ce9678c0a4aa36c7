import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readableBlobs } from '@svc/cas'
import { systemClock } from '@svc/internal-clock'
import {
  LeaseFile,
  type LocatedModel,
  type ModelEntry,
  type ReadableModels,
  type ResolvedModel
} from '@svc/internal-models'
import {
  Artifacts,
  ChangesElsewhere,
  companionBlobs,
  Documents,
  LibraryError,
  lookAtStore,
  Members,
  NewerCommits,
  NO_ADVICE,
  openResolved,
  ReplacedFiles,
  Repos,
  Resolver,
  Usage
} from '@svc/internal-state'
import { listModels } from './list-models.ts'

/**
 * Reads a store beside whoever owns it: takes no lock, and writes nothing but a file below `leases/`, with what this
 * process opened. That stays until `close`, or the end of the process.
 * @throws LibraryError `E_NO_STORE`, `E_UNFINISHED_COPY`, `E_ROOT`
 */
export async function readLibrary({ root }: { readonly root: string }): Promise<ReadableModels> {
  await lookAtStore({ root }, { mayMake: false })
  return new OpenedReader(root)
}

/** What a reader is made of. */
export interface ReadParts {
  readonly root: string
  readonly blobs: ReturnType<typeof readableBlobs>
  readonly repos: Repos
  readonly artifacts: Artifacts
  /** The changes of the store's owner. */
  readonly elsewhere: ChangesElsewhere
  /** @throws LibraryError `E_NO_STORE` while the store is not there */
  readonly requireRoot: () => void
}

export class OpenedReader implements ReadableModels {
  readonly #store: ReturnType<typeof readableBlobs>
  readonly #elsewhere: ChangesElsewhere
  readonly #repos: Repos
  readonly #artifacts: Artifacts
  readonly #documents: Documents
  readonly #resolver: Resolver
  readonly #leases: LeaseFile

  constructor(root: string) {
    const files = ReplacedFiles.forReading(join(root, 'state'))
    this.#store = readableBlobs(root)
    this.#elsewhere = new ChangesElsewhere(root, systemClock)
    this.#repos = new Repos(root, files, this.#elsewhere)
    this.#artifacts = new Artifacts(root, files, systemClock, this.#elsewhere)
    this.#documents = new Documents(this.#store)
    this.#resolver = new Resolver(this.#repos, this.#documents)
    this.#leases = new LeaseFile(root)
  }

  /** Undefined for other models. */
  static partsOf(models: ReadableModels): ReadParts | undefined {
    if (!(#store in models)) return undefined
    const { root } = models.#store
    return {
      root,
      blobs: models.#store,
      repos: models.#repos,
      artifacts: models.#artifacts,
      elsewhere: models.#elsewhere,
      requireRoot: () => {
        if (!existsSync(join(root, 'id'))) throw new LibraryError('E_NO_STORE', `there is no store at ${root}`)
      }
    }
  }

  resolve(ref: string): Promise<ResolvedModel> {
    return this.#resolver.resolve(ref)
  }

  async open(ref: string): Promise<LocatedModel> {
    const resolved = await this.#resolver.resolve(ref)
    const { manifestDigest, indexDigest } = resolved
    await this.#leases.keep([manifestDigest, ...(indexDigest === undefined ? [] : [indexDigest])])
    const manifest = await this.#documents.manifest(manifestDigest)
    await this.#leases.keep((manifest?.files ?? []).map(({ digest }) => digest))
    const parts = { store: this.#store, documents: this.#documents, artifacts: this.#artifacts }
    await this.#leases.keep(await companionBlobs(await parts.artifacts.ifReadable(manifestDigest), parts.documents))
    return openResolved(resolved, parts)
  }

  async list(): Promise<readonly ModelEntry[]> {
    const parts = { store: this.#store, documents: this.#documents, artifacts: this.#artifacts }
    const usage = await Usage.open({ root: this.#store.root, requireRoot: () => undefined }, systemClock)
    const members = new Members({ ...parts, usage, newer: new NewerCommits(), advise: NO_ADVICE })
    return listModels({ repos: this.#repos, documents: this.#documents, members })
  }

  async close(): Promise<void> {
    this.#leases.close()
  }
}
