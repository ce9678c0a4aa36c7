import type { Client } from './client.ts'
import { ClientError } from './errors.ts'
import type { Job } from './protocol/job.ts'
import type { OpenResult, ResolveResult } from './protocol/resolve.ts'

/** How far an operation is; absent fields are not known. */
export type ModelProgress = Pick<Job, 'filesDone' | 'filesTotal' | 'bytesDone' | 'bytesTotal' | 'files'>

/** Options of an operation. */
export interface ModelWorkOptions {
  /** Cancels the job, and rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: ModelProgress) => void) | undefined
}

/** The daemon's models behind the interface `Models` of the library. Errors are those of the {@link Client}. */
export interface DaemonModels {
  resolve(ref: string): Promise<ResolveResult>
  open(ref: string): Promise<OpenResult>
  /** Sorted by reference. */
  list(): Promise<
    {
      readonly ref: string
      readonly manifestDigest: string
      readonly sizeBytes: number
      readonly isComplete: boolean
    }[]
  >
  /** @throws ClientError with the code of the job */
  import(
    source: { readonly kind: 'local'; readonly paths: readonly string[] },
    as: string,
    options?: ModelWorkOptions
  ): Promise<NonNullable<Job['result']>>
  /** @throws ClientError with the code of the job */
  ensure(ref: string, options?: ModelWorkOptions): Promise<OpenResult>
  verify(
    target: string,
    options?: ModelWorkOptions
  ): Promise<{ readonly mismatched: string[]; readonly missing: string[]; readonly stateErrors: string[] }>
  /** Closes the client. */
  close(): Promise<void>
}

/** The models of a client's daemon, as a program has them that opens a store itself. */
export function modelsOf(client: Client): DaemonModels {
  const finished = async (start: Promise<Job>, { signal, onProgress }: ModelWorkOptions = {}): Promise<Job> => {
    const { id } = await start
    try {
      let last: Job | undefined
      for await (const job of client.watchJob(id, { signal })) {
        last = job
        onProgress?.(job)
      }
      return last!
    } catch (error) {
      if (signal?.aborted) await client.cancelJob(id).catch(() => undefined)
      throw error
    }
  }
  return {
    resolve: (ref) => client.resolve(ref),
    open: (ref) => client.open(ref),
    list: async () => {
      const { namespaces } = await client.models()
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
    },
    import: async ({ paths }, as, options) => {
      const { result } = succeeded(await finished(client.importLocal({ paths: [...paths], as }), options))
      return result!
    },
    ensure: async (ref, options) => {
      succeeded(await finished(client.ensure({ ref }), options))
      return client.open(ref)
    },
    verify: async (target, options) => {
      const job = await finished(client.verify({ target }), options)
      const { mismatched = [], missing = [], stateErrors = [] } = job.verify ?? succeeded(job).verify ?? {}
      return { mismatched, missing, stateErrors }
    },
    close: async () => client.close()
  }
}

function succeeded(job: Job): Job {
  const { error } = job
  if (error !== undefined) throw new ClientError(error.code, error.message, { candidates: error.candidates })
  return job
}
