import {
  blobsOf,
  LeaseFile,
  type LocatedModel,
  type ModelSource,
  type Models,
  type WorkOptions
} from '@svc/internal-models'
import type { Client } from './client.ts'
import { ClientError } from './errors.ts'
import type { ImportCatalogBody, ImportHfBody, ImportLocalBody, ImportOciBody } from './protocol/bodies.ts'
import type { Job } from './protocol/job.ts'

/**
 * The models of a client's daemon, as a program has them that opens a store itself. What `open` gives is neither collected nor
 * evicted before `close`, or the end of this process, if it can reach the store's folder. Errors are those of the {@link Client}.
 */
export const modelsOf = (client: Client): Models => new DaemonModels(client)

class DaemonModels implements Models {
  readonly #client: Client
  /** The daemon forgets what it has answered. */
  #leases: LeaseFile | undefined

  constructor(client: Client) {
    this.#client = client
  }

  resolve(ref: string) {
    return this.#client.resolve(ref)
  }

  async open(ref: string): Promise<LocatedModel> {
    if (this.#leases === undefined) {
      const { root } = await this.#client.status()
      this.#leases ??= new LeaseFile(root)
    }
    const leases = this.#leases
    for (let known: LocatedModel = await this.#client.open(ref); ; ) {
      await leases.keep(blobsOf(known))
      // as it is now that it stays
      const model: LocatedModel = await this.#client.open(ref)
      const kept = new Set(blobsOf(known))
      if (blobsOf(model).every((digest) => kept.has(digest))) return model
      known = model
    }
  }

  async list() {
    const { namespaces } = await this.#client.models()
    return namespaces
      .flatMap(({ ns, name, members }) =>
        members.map(({ quant, manifest: manifestDigest, sizeBytes, complete: isComplete }) => ({
          ref: `svc:///${ns}/${name}:${quant}`,
          manifestDigest,
          sizeBytes,
          isComplete
        }))
      )
      .sort((a, b) => (a.ref < b.ref ? -1 : 1))
  }

  async import(source: ModelSource, as: string, options?: WorkOptions) {
    options?.signal?.throwIfAborted()
    const { result } = succeeded(await this.#finished(startImport(this.#client, source, as), options))
    return result!
  }

  async ensure(ref: string, options?: WorkOptions): Promise<LocatedModel> {
    succeeded(await this.#finished(this.#client.ensure({ ref }), options))
    return this.open(ref)
  }

  async verify(target: string, options?: WorkOptions) {
    const job = await this.#finished(this.#client.verify({ target }), options)
    const { mismatched = [], missing = [], stateErrors = [] } = job.verify ?? succeeded(job).verify ?? {}
    return { mismatched, missing, stateErrors }
  }

  async close(): Promise<void> {
    this.#leases?.close()
    this.#leases = undefined
    this.#client.close()
  }

  async #finished(start: Promise<Job>, { signal, onProgress }: WorkOptions = {}): Promise<Job> {
    const { id } = await start
    try {
      let last: Job | undefined
      for await (const job of this.#client.watchJob(id, { signal })) {
        last = job
        onProgress?.(job)
      }
      return last!
    } catch (error) {
      if (signal?.aborted) await this.#client.cancelJob(id).catch(() => undefined)
      throw error
    }
  }
}

function succeeded(job: Job): Job {
  const { error } = job
  if (error !== undefined) throw new ClientError(error.code, error.message, { candidates: error.candidates })
  return job
}

/** Asks the daemon for what a source describes; how a library in this process would do it stays here. */
async function startImport(client: Client, source: ModelSource, as: string): Promise<Job> {
  const { inProcessOnly = [] } = 'inProcessOnly' in source ? source : {}
  if (inProcessOnly.length > 0) {
    const what = `${inProcessOnly.join(', ')}: the daemon follows its own configuration; leave it out, or set it there`
    throw new ClientError('E_BAD_REQUEST', what)
  }
  const { choice } = source
  switch (source.kind) {
    case 'local':
      return client.importLocal(body<ImportLocalBody>({ ...choice, paths: source.paths, as }))
    case 'hub': {
      const { repo, revision } = source
      return client.importHf(body<ImportHfBody>({ ...choice, repo, revision, as }))
    }
    case 'oci': {
      const { image, plainHttp } = source
      return client.importOci(body<ImportOciBody>({ ...choice, image, plainHttp, as }))
    }
    case 'oci-layout': {
      const { path, manifest } = source
      return client.importOci(body<ImportOciBody>({ ...choice, path, manifest, as }))
    }
    case 'catalog': {
      const { repo, quant, trustCatalog, peers } = source
      return client.importCatalog(body<ImportCatalogBody>({ ...choice, repo, quant, trustCatalog, peers, as }))
    }
    default:
      throw new ClientError('E_BAD_REQUEST', 'the first argument is no source of models')
  }
}

/** A body before it is sent, which leaves out what is undefined. */
type Unsent<Body> = { readonly [Field in keyof Body]: Readonly<Body[Field]> | undefined }

const body = <Body>(fields: Unsent<Body>): Body => fields as Body
