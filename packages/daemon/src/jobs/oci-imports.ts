import type { ImportOciBody, Job } from '@svc/client/protocol'
import type { DownloadLimit } from '@svc/internal-net'
import { checkPath, type Importer, importSelectionOf, importTarget } from '@svc/library/parts'
import { formatRepoId } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import { importOutcome } from './import-jobs.ts'
import type { JobRegistry } from './registry.ts'

export interface OciDeps {
  readonly version: string
  readonly jobs: JobRegistry
  readonly importer: Importer
  readonly downloads: DownloadLimit
}

/** Imports OCI artifacts: from a layout on this machine, or from a registry (spec add.31). */
export class OciImports {
  readonly #deps: OciDeps
  readonly #seedLocal: () => boolean | undefined

  /** @param seedLocal whether the user's own models are shared; undefined while not decided */
  constructor(deps: OciDeps, seedLocal: () => boolean | undefined) {
    this.#deps = deps
    this.#seedLocal = seedLocal
  }

  /** A problem with the source is an error of the job. @throws LibraryError `E_INVALID` */
  async importOci(body: ImportOciBody): Promise<Job> {
    const { path, image, as } = body
    const repo = importTarget(as, 'as')
    if ((path === undefined) === (image === undefined)) {
      throw new DaemonError('E_BAD_REQUEST', 'send either "path" (a layout) or "image" (registry/name:tag)')
    }
    if (path !== undefined) checkPath(path)
    const privateByDefault = path !== undefined && this.#seedLocal() === false
    const selection = importSelectionOf(body, privateByDefault)
    const { listOci, requireImage } = await import('@svc/sources/oci/parts')
    if (image !== undefined) await requireImage(image)
    const { jobs, importer, version, downloads } = this.#deps
    return jobs.start({ kind: 'import-oci', ref: path ?? image!, as: formatRepoId(repo) }, async (work) => {
      const { manifest, plainHttp } = body
      const place =
        path !== undefined ? { path, manifest } : { image: image!, plainHttp, userAgent: `svcd/${version}`, downloads }
      const source = await listOci(place, work.signal)
      const bytesTotal = source.files.reduce((total, { sizeBytes }) => total + sizeBytes, 0)
      work.report({ filesTotal: source.files.length, bytesTotal })
      return importOutcome(await importer.run({ repo, source, selection }, work))
    })
  }
}
