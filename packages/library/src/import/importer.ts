import { requireImportable, warningsOfNames } from '@svc/classify'
import { timestampOf } from '@svc/internal-clock'
import {
  type BroughtModel,
  type ComingImport,
  choiceUnder,
  type Library,
  type Offload,
  outsideWarnings,
  type Provenance,
  SIGNATURE,
  upstreamConfigOf,
  withheldNotice,
  withMark
} from '@svc/internal-state'
import { formatRepoId, type RepoId, type Sha256Digest } from '@svc/ref'
import type { Work } from '../operations/work.ts'
import { planSelected } from './choice.ts'
import { classifyFiles } from './classify.ts'
import { comingModels, earlyHeaders } from './coming.ts'
import { commitArtifacts, requireVacancyBefore } from './commit.ts'
import { companionsOf, companionWarnings, leftOut } from './companions.ts'
import type { Imported } from './imported.ts'
import { type IngestContext, type Ingested, ingestFiles } from './ingest.ts'
import { inspectImport } from './inspected.ts'
import { malformedIn, markingMalformed } from './malformed.ts'
import { bytesToRead, companionsAlone, entriesAlone, type PlannedImport, planListing } from './plan.ts'
import { ImportProgress } from './progress.ts'
import { Proof } from './proof.ts'
import { besideOf, type RuledImport, ruledImport } from './ruled-import.ts'
import { type SealedArtifact, sealArtifacts, writeDocument } from './seal.ts'
import type { ImportSelection } from './selection.ts'
import { settleRoles } from './settled-roles.ts'
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
    | 'advise'
  > {
  readonly room: IngestContext['room']
  readonly offload: Offload
  /** In the lane of the mirrors' clients, so that the owner's work never waits for theirs (spec add.40). */
  readonly strangersOffload: Offload
}

export interface ImportRequest {
  /** The repository for the artifacts; not in a reserved namespace. */
  readonly repo: RepoId
  readonly source: ImportSource
  readonly selection: ImportSelection
  /** A client of a mirror caused it: it runs in {@link ImporterDeps.strangersOffload}. */
  readonly ofStranger?: boolean
}

/** An import whose listing was checked. */
export interface ReadyImport {
  readonly filesTotal: number
  /** Of the files to read. */
  readonly bytesTotal: number
  /** Does it; the caller closes the source. */
  readonly run: (work: Work) => Promise<Imported>
}

/** A stored artifact, and the source of its companions. */
export interface CompanionsRequest {
  /** The requested name of the artifact. */
  readonly repo: RepoId
  readonly manifestDigest: Sha256Digest
  /** Lists the source, which is always closed afterwards. @throws LibraryError when it is not the artifact's */
  readonly source: (signal: AbortSignal) => Promise<ImportSource>
}

interface ImportContext extends Work, Pick<IngestContext, 'onDescribed'> {
  readonly offload: Offload
  readonly proof: Proof
  /** UTC, RFC 3339. */
  readonly beganAt: string
  readonly coming: ComingImport | undefined
}

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

  /** Checks a listing. @throws as `planListing`; ClassifyError `E_NOT_IMPORTABLE` */
  async plan(
    { repo, source, selection, ofStranger = false }: ImportRequest,
    signal: AbortSignal
  ): Promise<ReadyImport> {
    const { offload: owners, strangersOffload, trust } = this.#deps
    const offload = ofStranger ? strangersOffload : owners
    const plan = ruledImport(repo, await planSelected(source, selection, offload, signal), trust)
    signal.throwIfAborted()
    return {
      filesTotal: plan.source.files.length,
      bytesTotal: bytesToRead(plan),
      run: (work) => this.#run(plan, selection, repo, { ...work, offload })
    }
  }

  /** Runs the pipeline. The source is always closed. @throws LibraryError as `planListing` and the stages */
  async run(request: ImportRequest, work: Work): Promise<Imported> {
    try {
      const { run } = await this.plan(request, work.signal)
      return await run(work)
    } finally {
      await request.source.close()
    }
  }

  /** Fetches only the companions of an artifact (spec add.49). @throws as its `source` and the stages */
  async bringCompanions(
    { repo, manifestDigest, source: list }: CompanionsRequest,
    work: Pick<Work, 'signal' | 'report'>
  ): Promise<Imported> {
    const source = await list(work.signal)
    try {
      return await this.#bringCompanions(source, { repo, manifestDigest }, work)
    } finally {
      await source.close()
    }
  }

  async #bringCompanions(
    listed: ImportSource,
    { repo, manifestDigest }: { readonly repo: RepoId; readonly manifestDigest: Sha256Digest },
    { signal, report }: Pick<Work, 'signal' | 'report'>
  ): Promise<Imported> {
    const { store, offload, holdings, artifacts, documents, trust } = this.#deps
    const plan = ruledImport(repo, await planListing(listed, offload), trust)
    const alone = companionsAlone(plan)
    report({ filesTotal: alone.companions.files.size, bytesTotal: bytesToRead(alone) })
    const proof = new Proof(holdings, listed.origin)
    const progress = new ImportProgress(report)
    const ingested = await ingestFiles(alone, { ...this.#deps, mayEvict: false, signal, progress, proof })
    const companions = companionsOf(plan.companions, listed, ingested.companions)!
    const manifest = await documents.manifest(manifestDigest)
    const { files: entries = [], annotations = {} } = manifest ?? {}
    const config = plan.rule && manifest && (await upstreamConfigOf(manifest, store))
    const { files, omitted } = companions.document
    const known = choiceUnder((await artifacts.ifReadable(manifestDigest)) ?? {}, formatRepoId(repo))
    const brought = { entries, annotations, config, companions: files, omitted, ...known, isArtifact: true }
    const doubts = await this.#doubts(plan, brought, report)
    await writeDocument(store, companions, signal)
    signal.throwIfAborted()
    await artifacts.addCompanions(manifestDigest, formatRepoId(repo), {
      digest: companions.digest,
      facts: await listed.provenance(),
      isOfSource: true
    })
    this.#tell(manifestDigest)
    const names = new Set(entries.map((file) => file.name))
    const warnings = [...listed.warnings, ...doubts, ...(await companionWarnings(companions, names, this.#deps))]
    return {
      manifests: [manifestDigest],
      ...(warnings.length > 0 && { warnings }),
      skipped: plan.recognition.skipped.length,
      companions: companions.digest,
      omitted: leftOut(companions).length
    }
  }

  /**
   * Fetches files of a source again, by their upstream names. The record of their artifact does not change.
   * The source is closed afterwards. @throws as an import
   */
  async bringBack(
    source: ImportSource,
    names: ReadonlySet<string>,
    { signal, report, mayEvict }: Pick<Work, 'signal' | 'report'> & Pick<IngestContext, 'mayEvict'>
  ): Promise<void> {
    const { offload, holdings } = this.#deps
    try {
      const plan = entriesAlone(await planListing(source, offload), names)
      const proof = new Proof(holdings, source.origin)
      const progress = new ImportProgress(report)
      await ingestFiles(plan, { ...this.#deps, mayEvict, signal, progress, proof })
      await proof.settle()
    } finally {
      await source.close()
    }
  }

  /**
   * Whether a name has only artifacts that clients of the mirrors caused, or none: nothing that its owner chose.
   * @throws LibraryError `E_NO_INDEX`, `E_INVALID_INDEX`
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
    context: Work & { readonly offload: Offload }
  ): Promise<Imported> {
    const { source, rule, recognition } = plan
    // before any byte is read
    requireImportable(recognition)
    if (rule?.mode === 'require' && !plan.files.has(SIGNATURE)) throw this.#deps.trust.refusal(rule)
    const early = [...source.warnings, ...warningsOfNames(recognition).map(({ message }) => message)]
    if (early.length > 0) context.report({ warnings: early })
    const named = new Set(recognition.entries.flatMap(({ quant }) => (quant === undefined ? [] : [quant])))
    await requireVacancyBefore(repo, named, { ...source, mayReplace: selection.mayReplace }, this.#deps)
    const proof = new Proof(this.#deps.holdings, source.origin)
    const beganAt = timestampOf(this.#deps.clock)
    const coming = await this.#begin(plan, selection, repo, { ...context, proof, beganAt })
    const onDescribed = coming && this.#describing(coming, plan, context)
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
    { id, proof, beganAt }: Pick<ImportContext, 'id' | 'proof' | 'beganAt'>
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
      id,
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
  #describing(
    by: ComingImport,
    plan: PlannedImport,
    { offload, signal }: Pick<ImportContext, 'offload' | 'signal'>
  ): IngestContext['onDescribed'] {
    const { coming, store, log } = this.#deps
    const headers = earlyHeaders(plan, offload, signal)
    headers.catch(() => undefined)
    return async (described, signal) => {
      try {
        coming.describe(by, await comingModels(plan, described, await headers, { store, offload, signal }))
      } catch (error) {
        signal.throwIfAborted()
        log.info({ err: error, name: by.name }, 'mirrors show a model only once it is complete')
        coming.end(by)
      }
    }
  }

  async #bring(
    planned: RuledImport,
    selection: ImportSelection,
    repo: RepoId,
    { signal, report, offload, proof, beganAt, coming, onDescribed }: ImportContext
  ): Promise<Imported> {
    const { store, leafLayers } = this.#deps
    const { mayEvict, ...asked } = selection
    const progress = new ImportProgress(report)
    const taken = await ingestFiles(planned, { ...this.#deps, mayEvict, signal, progress, proof, onDescribed })
    const { plan, ingested } = await settleRoles({ plan: planned, ingested: taken }, { store, offload })
    const { source, recognition } = plan
    const artifacts = await classifyFiles(plan, ingested, store, offload)
    const malformed = malformedIn(artifacts, selection)
    const inspected = await inspectImport(plan, ingested, plan.inspection, { store, offload })
    const { companions, brought } = besideOf(plan, ingested, artifacts, selection.choice)
    // before documents are written that make a model of the blobs
    const doubts = await this.#doubts(plan, brought, report)
    const sealed = await sealArtifacts(artifacts, ingested, source.annotations, { store, leafLayers, signal })
    if (companions !== undefined) await writeDocument(store, companions, signal)
    signal.throwIfAborted()
    const { origin, follows } = source
    const facts = await this.#facts(source, selection)
    const entries = new Set([...ingested.blobs.values()].map(({ digest }) => digest))
    const given = await proof.provenances(facts, entries, weightsOf(plan, ingested))
    const provenanceOf = markingMalformed(given, malformed)
    const marks = { ...asked, origin, follows, beganAt, provenanceOf, companions: companions?.digest }
    const { indexDigest, replaced, before } = await commitArtifacts(repo, sealed, marks, this.#deps)
    this.#deps.coming.end(
      coming,
      sealed.map(({ member }) => member)
    )
    await proof.settle()
    const manifests = sealed.map(({ manifest }) => manifest.digest)
    for (const digest of manifests) this.#tell(digest)
    const names = new Set(recognition.entries.map(({ name }) => name))
    const beside = companions === undefined ? [] : await companionWarnings(companions, names, this.#deps)
    const ofFiles = [...artifacts.warnings.map(({ message }) => message), ...(await this.#outside(sealed)), ...beside]
    const told = [...inspected, ...doubts, ...(await this.#withheld(repo, sealed)), ...ofFiles]
    const warnings = [...source.warnings, ...told, ...repacked(source, manifests)]
    return {
      manifests,
      indexDigest,
      quants: sealed.map(({ member }) => member.quant),
      ...(replaced.length > 0 && { replaced }),
      ...(before !== undefined && { before }),
      ...(warnings.length > 0 && { warnings }),
      skipped: recognition.skipped.length,
      ...(source.kind !== 'local' && { fetchedBytes: progress.fetchedBytes }),
      ...(progress.reusedBytes > 0 && { reusedBytes: progress.reusedBytes }),
      ...(companions !== undefined && { companions: companions.digest, omitted: leftOut(companions).length }),
      ...(plan.notChosen !== undefined && { notChosen: plan.notChosen })
    }
  }

  /** @throws LibraryError `E_NOT_IMPORTABLE` if the rule refuses the import @returns warnings */
  async #doubts({ rule }: RuledImport, brought: BroughtModel, report: Work['report']): Promise<string[]> {
    const { store, clock, trust } = this.#deps
    if (rule === undefined) return []
    const warnings = await trust.check(rule, brought, { store, clock, onReading: (message) => report({ message }) })
    report({ message: undefined })
    return warnings
  }

  #outside(sealed: readonly Pick<SealedArtifact, 'manifest'>[]): Promise<readonly string[]> {
    const files = sealed.flatMap(({ manifest }) => manifest.document.files)
    return outsideWarnings(files, this.#deps)
  }

  async #withheld(repo: RepoId, sealed: readonly Pick<SealedArtifact, 'member'>[]): Promise<string[]> {
    const notices: string[] = []
    for (const { member } of sealed) {
      const standing = await this.#deps.artifacts.standing(member.manifest)
      const notice = withheldNotice(`${formatRepoId(repo)}:${member.quant}`, standing, this.#deps.advise)
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

/** An artifact whose files make another manifest than it says. */
const repacked = ({ packedFrom }: ImportSource, manifests: readonly string[]): string[] =>
  packedFrom === undefined || manifests.includes(packedFrom)
    ? []
    : [`the artifact says that it was packed from ${packedFrom}, but its files make another manifest`]

/** Weights, adapters and opaque files: files derived from others belong to no source. */
const weightsOf = ({ recognition }: PlannedImport, { blobs }: Ingested): readonly Sha256Digest[] =>
  recognition.entries
    .filter(({ kind }) => kind.startsWith('weights.') || kind === 'adapter' || kind === 'opaque')
    .map(({ name }) => blobs.get(name)!.digest)
