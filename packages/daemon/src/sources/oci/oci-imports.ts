import type { ImportOciBody, Job } from '@svc/client/protocol'
import {
  checkPath,
  type Importer,
  type ImportSelection,
  importSelectionOf,
  importTarget,
  type Work
} from '@svc/library/parts'
import { formatRepoId, type RepoId } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import { importOutcome } from '../../jobs/import-jobs.ts'
import type { JobOutcome } from '../../jobs/job-work.ts'
import type { JobRegistry } from '../../jobs/registry.ts'
import { type Oci, ociFailure } from './errors.ts'
import { type ListedArtifact, listLayout, listRegistry, ociSource } from './listing.ts'

export interface OciDeps {
  readonly version: string
  readonly jobs: JobRegistry
  readonly importer: Importer
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

  /** A problem with the source is an error of the job. @throws DaemonError `E_BAD_REQUEST` */
  async importOci(body: ImportOciBody): Promise<Job> {
    const { path, image, as } = body
    const repo = importTarget(as, 'as')
    if ((path === undefined) === (image === undefined)) {
      throw new DaemonError('E_BAD_REQUEST', 'send either "path" (a layout) or "image" (registry/name:tag)')
    }
    if (path !== undefined) checkPath(path)
    const privateByDefault = path !== undefined && this.#seedLocal() === false
    const selection = importSelectionOf(body, privateByDefault)
    const oci = await import('@svc/oci')
    const { OciDocumentReader } = await import('./oci-documents.ts')
    if (image !== undefined) {
      try {
        oci.parseRegistryReference(image)
      } catch (error) {
        throw ociFailure(oci, error)
      }
    }
    return this.#deps.jobs.start({ kind: 'import-oci', ref: path ?? image!, as: formatRepoId(repo) }, async (job) => {
      const documents = new OciDocumentReader()
      try {
        const userAgent = `svcd/${this.#deps.version}`
        const listed =
          path !== undefined
            ? await listLayout(oci, path, body.manifest, documents.read)
            : await listRegistry(oci, image!, { userAgent, plainHttp: body.plainHttp }, documents.read, job.signal)
        return await this.#run(oci, listed, repo, selection, job)
      } catch (error) {
        throw ociFailure(oci, error)
      } finally {
        await documents.close()
      }
    })
  }

  async #run(
    oci: Oci,
    listed: ListedArtifact,
    repo: RepoId,
    selection: ImportSelection,
    job: Work
  ): Promise<JobOutcome> {
    const source = ociSource(oci, listed)
    job.report({
      filesTotal: source.files.length,
      bytesTotal: source.files.reduce((total, { sizeBytes }) => total + sizeBytes, 0)
    })
    const imported = await this.#deps.importer.run({ repo, source, selection }, job)
    const { pin } = listed.model
    if (pin === undefined || imported.manifests.some((each) => each === pin)) return importOutcome(imported)
    const warning = `the artifact says that it was packed from ${pin}, but its files make another manifest`
    return importOutcome({ ...imported, warnings: [...(imported.warnings ?? []), warning] })
  }
}
