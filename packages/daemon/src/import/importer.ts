import { ClassifyError, requireImportable, warningsOfNames } from '@svc/classify'
import type { Job, JobKind } from '@svc/client/protocol'
import { timestampOf } from '@svc/internal-clock'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import type { JobContext, JobOutcome, JobStart } from '../jobs/job-work.ts'
import type { JobRegistry } from '../jobs/registry.ts'
import type { ComingImport } from '../library/coming.ts'
import type { Library } from '../library/library.ts'
import { type Provenance, withheldNotice, withMark } from '../library/provenance.ts'
import { type BroughtModel, SIGNATURE } from '../library/trust.ts'
import type { Offload } from '../offload/pool.ts'
import { planSelected } from './choice.ts'
import { classifyFiles } from './classify.ts'
import { comingModels, earlyHeaders } from './coming.ts'
import { commitArtifacts, requireVacancyBefore } from './commit.ts'
import { companionsOf, companionWarnings, leftOut } from './companions.ts'
import { type IngestContext, type Ingested, ingestFiles } from './ingest.ts'
import { bytesToRead, companionsAlone, entriesAlone, type PlannedImport, planListing } from './plan.ts'
import { ImportProgress } from './progress.ts'
import { Proof } from './proof.ts'
import { besideOf, type RuledImport, ruledImport } from './ruled-import.ts'
import { type SealedArtifact, sealArtifacts, writeDocument } from './seal.ts'
import type { ImportSelection } from './selection.ts'
import type { ImportSource } from './source.ts'

export interface ImporterDeps
  extends Pick<
    Library,
    | 'store'
    | 'documents'
    | 'repos'
    | 'holdings'
    | 'artifacts'
    | 'superseded'
    | 'leafLayers'
    | 'wanted'
    | 'coming'
    | 'trust'
    | 'clock'
    | 'log'
  > {
  readonly jobs: JobRegistry
  readonly room: IngestContext['room']
  readonly offload: Offload
  /** In the lane of the mirrors' clients, so that the owner's work never waits for theirs (spec add.40). */
  readonly strangersOffload: Offload
}

export interface ImportRequest {
  readonly kind: Extract<JobKind, 'import-local' | 'import-hf' | 'import-catalog' | 'import-oci'>
  /** `ref` of the job (spec job.5). */
  readonly ref: string
  /** The repository for the artifacts; not in a reserved namespace. */
  readonly repo: RepoId
  readonly source: ImportSource
  readonly selection: ImportSelection
  /** As in {@link JobStart}. */
  readonly lane?: JobStart['lane']
  /** Stops the planning. */
  readonly signal?: AbortSignal
}

/** A stored artifact, and the source of its companions. */
export interface CompanionsRequest {
  /** `ref` of the job (spec job.5). */
  readonly ref: string
  /** The requested name of the artifact. */
  readonly repo: RepoId
  readonly manifestDigest: Sha256Digest
  /** Lists the source, which is always closed afterwards. @throws DaemonError when it is not the artifact's */
  readonly source: (signal: AbortSignal) => Promise<ImportSource>
}

interface ImportContext extends JobContext, Pick<IngestContext, 'onDescribed'> {
  readonly offload: Offload
  readonly proof: Proof
  /** UTC, RFC 3339. */
  readonly beganAt: string
  readonly coming: ComingImport | undefined
}

/** Planning a listing is bounded by the limits of its source; there is no job yet that could be cancelled. */
const UNSTOPPED = new AbortController().signal

/** The pipeline, the same for every source (spec rec.1 to rec.4): plan → ingest → classify → seal → commit. */
export class Importer {
  readonly #deps: ImporterDeps
  readonly #listeners: ((manifestDigest: Sha256Digest) => void)[] = []

  constructor(deps: ImporterDeps) {
    this.#deps = deps
  }

  /** Registers a listener for each artifact of a finished import. */
  onImported(listener: (manifestDigest: Sha256Digest) => void): void {
    this.#listeners.push(listener)
  }

  /**
   * Accepts an import: the listing is checked now. The source is always closed.
   * @throws as `planListing`, `E_SHUTTING_DOWN`
   */
  async start(request: ImportRequest): Promise<Job> {
    const { kind, ref, repo, source, selection, lane, signal = UNSTOPPED } = request
    const { jobs, offload: owners, strangersOffload, trust } = this.#deps
    const offload = lane === 'demand' ? strangersOffload : owners
    const start = { kind, ref, as: formatRepoId(repo), ...(lane !== undefined && { lane }) }
    try {
      const plan = ruledImport(repo, await planSelected(source, selection, offload, signal), trust)
      signal.throwIfAborted()
      return jobs.start(
        { ...start, filesTotal: plan.source.files.length, bytesTotal: bytesToRead(plan) },
        (context) => this.#run(plan, selection, repo, { ...context, offload }),
        () => source.close()
      )
    } catch (error) {
      await source.close()
      if (!(error instanceof ClassifyError) || error.code !== 'E_NOT_IMPORTABLE') throw error
      // the request itself is valid, and that code is for jobs only (spec err.3)
      return jobs.start({ ...start, filesTotal: source.files.length }, () => Promise.reject(error))
    }
  }

  /**
   * Runs the pipeline within a job of the caller, for sources whose listing arrives late. The source is always closed.
   * @throws DaemonError as `planListing` and the stages
   */
  async run(
    { repo, source, selection }: Pick<ImportRequest, 'repo' | 'source' | 'selection'>,
    context: JobContext
  ): Promise<JobOutcome> {
    const { offload, trust } = this.#deps
    try {
      const plan = ruledImport(repo, await planSelected(source, selection, offload, context.signal), trust)
      return await this.#run(plan, selection, repo, { ...context, offload })
    } finally {
      await source.close()
    }
  }

  /**
   * Fetches only the companions of an artifact (spec add.49).
   * @throws DaemonError `E_SHUTTING_DOWN`, `E_RATE_LIMITED`
   */
  startCompanions({ ref, repo, manifestDigest, source: list }: CompanionsRequest): Job {
    const start = { kind: 'companions', ref, manifest: manifestDigest } as const
    return this.#deps.jobs.start(start, async (context) => {
      const source = await list(context.signal)
      try {
        return await this.#bringCompanions(source, { repo, manifestDigest }, context)
      } finally {
        await source.close()
      }
    })
  }

  async #bringCompanions(
    listed: ImportSource,
    { repo, manifestDigest }: { readonly repo: RepoId; readonly manifestDigest: Sha256Digest },
    { signal, update }: JobContext
  ): Promise<JobOutcome> {
    const { store, offload, holdings, artifacts, documents, trust } = this.#deps
    const plan = ruledImport(repo, await planListing(listed, offload), trust)
    const alone = companionsAlone(plan)
    update({ filesTotal: alone.companions.files.size, bytesTotal: bytesToRead(alone) })
    const proof = new Proof(holdings, listed.origin)
    const progress = new ImportProgress(update)
    const ingested = await ingestFiles(alone, { ...this.#deps, mayEvict: false, signal, progress, proof })
    const companions = companionsOf(plan.companions, listed, ingested.companions)!
    const entries = (await documents.manifest(manifestDigest))?.files ?? []
    const { files, omitted } = companions.document
    const doubts = await this.#doubts(plan, { entries, companions: files, omitted }, update)
    await writeDocument(store, companions, signal)
    signal.throwIfAborted()
    await artifacts.addCompanions(manifestDigest, formatRepoId(repo), {
      digest: companions.digest,
      facts: await listed.provenance(),
      isOfSource: true
    })
    this.#tell(manifestDigest)
    const names = new Set(entries.map((file) => file.name))
    const warnings = [...listed.warnings, ...doubts, ...(await companionWarnings(companions, names, store))]
    return {
      result: {
        manifests: [manifestDigest],
        ...(warnings.length > 0 && { warnings }),
        skipped: plan.recognition.skipped.length,
        companions: companions.digest,
        omitted: leftOut(companions).length
      }
    }
  }

  /**
   * Fetches files of a source again, by their upstream names. The record of their artifact does not change.
   * The source is closed afterwards. @throws as an import's job
   */
  async bringBack(
    source: ImportSource,
    names: ReadonlySet<string>,
    { signal, update, mayEvict }: Pick<JobContext, 'signal' | 'update'> & Pick<IngestContext, 'mayEvict'>
  ): Promise<void> {
    const { offload, holdings } = this.#deps
    try {
      const plan = entriesAlone(await planListing(source, offload), names)
      const proof = new Proof(holdings, source.origin)
      const progress = new ImportProgress(update)
      await ingestFiles(plan, { ...this.#deps, mayEvict, signal, progress, proof })
      await proof.settle()
    } finally {
      await source.close()
    }
  }

  /**
   * Whether a name has only artifacts that clients of the mirrors caused, or none: nothing that its owner chose.
   * @throws DaemonError `E_NO_INDEX`, `E_INVALID_INDEX`
   */
  async isStrangers({ ns, name }: RepoId): Promise<boolean> {
    const { repos, documents, artifacts } = this.#deps
    const state = await repos.read(ns, name)
    if (state === undefined) return true
    if (state.index === undefined || state.tags.size > 0) return false
    for (const { manifest } of (await documents.index(state.index)).members) {
      const standing = await artifacts.standing(manifest)
      if (standing === 'damaged' || standing?.source.onDemand !== true) return false
    }
    return true
  }

  async #run(
    plan: RuledImport,
    selection: ImportSelection,
    repo: RepoId,
    context: JobContext & { readonly offload: Offload }
  ): Promise<JobOutcome> {
    const { source, rule, recognition } = plan
    // before any byte is read
    requireImportable(recognition)
    if (rule?.mode === 'require' && !plan.files.has(SIGNATURE)) throw this.#deps.trust.refusal(rule)
    const early = [...source.warnings, ...warningsOfNames(recognition).map(({ message }) => message)]
    if (early.length > 0) context.update({ warnings: early })
    const named = new Set(recognition.entries.flatMap(({ quant }) => (quant === undefined ? [] : [quant])))
    await requireVacancyBefore(repo, named, { ...source, mayReplace: selection.mayReplace }, this.#deps)
    const proof = new Proof(this.#deps.holdings, source.origin)
    const beganAt = timestampOf(this.#deps.clock)
    const coming = await this.#begin(plan, selection, repo, { ...context, proof, beganAt })
    const onDescribed = coming && this.#describing(coming, plan, context.signal)
    try {
      return await this.#bring(plan, selection, repo, { ...context, proof, beganAt, coming, onDescribed })
    } finally {
      this.#deps.coming.end(coming)
    }
  }

  /** Lets mirrors show the owner's imports from the hub while they run; a model that needs a signature only after its check. */
  async #begin(
    { source, rule, recognition, files }: RuledImport,
    selection: ImportSelection,
    repo: RepoId,
    { id: job, proof, beganAt }: Pick<ImportContext, 'id' | 'proof' | 'beganAt'>
  ): Promise<ComingImport | undefined> {
    const { coming, store } = this.#deps
    const { kind, origin } = source
    if (!coming.isWatched || kind !== 'hf' || origin.onDemand === true) return undefined
    if (rule?.mode === 'require') return undefined
    const facts = await this.#facts(source, selection)
    const listed = new Map<Sha256Digest, string>()
    for (const { name, content } of recognition.entries) {
      const digest = content.from === 'file' ? files.get(content.name)!.digest : undefined
      if (digest !== undefined) listed.set(digest, name)
    }
    return coming.begin({
      job,
      name: formatRepoId(repo),
      source: origin,
      beganAt,
      provenanceOf: (manifest) => proof.provenanceNow(facts, listed, manifest?.files, store),
      // all other files are fetched even if they are here
      hasGiven: async (digest) => !listed.has(digest) || proof.hasGiven(digest)
    })
  }

  async #facts(source: ImportSource, selection: ImportSelection): Promise<Provenance> {
    return withMark(await source.provenance(), selection.private, this.#deps.clock)
  }

  /** A failure to show a model does not end the import. */
  #describing(by: ComingImport, plan: PlannedImport, signal: AbortSignal): IngestContext['onDescribed'] {
    const { coming, store, log } = this.#deps
    const headers = earlyHeaders(plan, signal)
    headers.catch(() => undefined)
    return async (described, signal) => {
      try {
        coming.describe(by, await comingModels(plan, described, await headers, store, signal))
      } catch (error) {
        signal.throwIfAborted()
        log.info({ err: error, name: by.name }, 'mirrors show a model only once it is complete')
        coming.end(by)
      }
    }
  }

  async #bring(
    plan: RuledImport,
    selection: ImportSelection,
    repo: RepoId,
    { signal, update, offload, proof, beganAt, coming, onDescribed }: ImportContext
  ): Promise<JobOutcome> {
    const { store, leafLayers } = this.#deps
    const { source, recognition } = plan
    const { mayReplace, keepBefore, mayEvict } = selection
    const progress = new ImportProgress(update)
    const ingested = await ingestFiles(plan, { ...this.#deps, mayEvict, signal, progress, proof, onDescribed })
    const { companions, brought } = besideOf(plan, ingested)
    // before documents are written that make a model of the blobs
    const doubts = await this.#doubts(plan, brought, update)
    const artifacts = await classifyFiles(plan, ingested, store, offload)
    const sealed = await sealArtifacts(artifacts, ingested, source.annotations, { store, leafLayers, signal })
    if (companions !== undefined) await writeDocument(store, companions, signal)
    signal.throwIfAborted()
    const { origin, follows } = source
    const facts = await this.#facts(source, selection)
    const entries = new Set([...ingested.blobs.values()].map(({ digest }) => digest))
    const provenanceOf = await proof.provenances(facts, entries, weightsOf(plan, ingested))
    const marks = { origin, follows, beganAt, provenanceOf, mayReplace, keepBefore, companions: companions?.digest }
    const { indexDigest, replaced, before } = await commitArtifacts(repo, sealed, marks, this.#deps)
    this.#deps.coming.end(
      coming,
      sealed.map(({ member }) => member)
    )
    await proof.settle()
    const manifests = sealed.map(({ manifest }) => manifest.digest)
    for (const digest of manifests) this.#tell(digest)
    const withheld = await this.#withheld(repo, sealed)
    const names = new Set(recognition.entries.map(({ name }) => name))
    const beside = companions === undefined ? [] : await companionWarnings(companions, names, store)
    const told = [...doubts, ...withheld, ...artifacts.warnings.map(({ message }) => message), ...beside]
    const warnings = [...source.warnings, ...told]
    return {
      manifest: manifests[0]!,
      result: {
        manifests,
        indexDigest,
        quants: sealed.map(({ member }) => member.quant),
        ...(replaced.length > 0 && { replaced: [...replaced] }),
        ...(before !== undefined && { before }),
        ...(warnings.length > 0 && { warnings }),
        skipped: recognition.skipped.length,
        ...(source.kind !== 'local' && { fetchedBytes: progress.fetchedBytes }),
        ...(progress.reusedBytes > 0 && { reusedBytes: progress.reusedBytes }),
        ...(companions !== undefined && { companions: companions.digest, omitted: leftOut(companions).length }),
        ...(plan.notChosen !== undefined && { notChosen: plan.notChosen })
      }
    }
  }

  /** @throws DaemonError `E_NOT_IMPORTABLE` if the rule refuses the import @returns warnings */
  async #doubts({ rule }: RuledImport, brought: BroughtModel, update: JobContext['update']): Promise<string[]> {
    const { store, clock, trust } = this.#deps
    if (rule === undefined) return []
    const warnings = await trust.check(rule, brought, { store, clock, onReading: (message) => update({ message }) })
    update({ message: undefined })
    return warnings
  }

  async #withheld(repo: RepoId, sealed: readonly Pick<SealedArtifact, 'member'>[]): Promise<string[]> {
    const notices: string[] = []
    for (const { member } of sealed) {
      const standing = await this.#deps.artifacts.standing(member.manifest)
      const notice = withheldNotice(`${formatRepoId(repo)}:${member.quant}`, standing)
      if (notice !== undefined) notices.push(notice)
    }
    return notices
  }

  #tell(digest: Sha256Digest): void {
    for (const listener of this.#listeners) {
      try {
        listener(digest)
      } catch (error) {
        this.#deps.log.error({ err: error, manifest: digest }, 'an import is done, but the work after it failed')
      }
    }
  }
}

/** Weights and adapters: files derived from others belong to no source. */
const weightsOf = ({ recognition }: PlannedImport, { blobs }: Ingested): readonly Sha256Digest[] =>
  recognition.entries
    .filter(({ kind }) => kind.startsWith('weights.') || kind === 'adapter')
    .map(({ name }) => blobs.get(name)!.digest)
