import type { ImportLocalBody, Job } from '@svc/client/protocol'
import { isReservedNamespace, parseRepoId, type RepoId } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import type { Importer } from '../../import/importer.ts'
import { localSource } from './source.ts'

/** Imports from the disks of this machine. */
export class LocalPart {
  readonly #importer: Importer

  constructor({ importer }: { readonly importer: Importer }) {
    this.#importer = importer
  }

  /**
   * Walks the paths, and accepts the job. Nothing is read before that.
   * @throws DaemonError `E_BAD_REQUEST`, `E_SOURCE_NOT_REGULAR`
   */
  async importLocal({ paths, as }: ImportLocalBody): Promise<Job> {
    const repo = localTarget(as)
    return this.#importer.start({ kind: 'import-local', ref: as, repo, source: await localSource(paths) })
  }
}

/** `ns/name` that something may be imported into. @throws DaemonError `E_BAD_REQUEST` */
function localTarget(as: string): RepoId {
  let repo: RepoId
  try {
    repo = parseRepoId(as)
  } catch (cause) {
    throw new DaemonError('E_BAD_REQUEST', `the field "as": ${(cause as Error).message}`, { cause })
  }
  if (!isReservedNamespace(repo.ns)) return repo
  throw new DaemonError('E_BAD_REQUEST', `the field "as": the namespace "${repo.ns}" is reserved; choose another one`)
}
