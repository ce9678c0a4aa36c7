import type { DiskBlobStore } from '@svc/cas'
import type { OwnersChoice } from '@svc/classify'
import type { Companions, Manifest } from '@svc/manifest'
import { formatRepoId, formatShortRef, parseRef, type RepoId, type Sha256Digest } from '@svc/ref'
import { type ArtifactState, choiceUnder, companionsUnder } from './artifact-record.ts'
import type { CompanionsUse, Documents } from './documents.ts'
import { givenCompanions, markedOmissions, ownCompanions } from './given-companions.ts'
import { type Advise, NO_ADVICE } from './library-error.ts'
import { readSmallBlob } from './small-blob.ts'
import type { StoreState } from './state.ts'

export interface CompanionDeps extends ReadDeps {
  readonly store: Pick<DiskBlobStore, 'root' | 'stat' | 'open' | 'blobPath'>
}

/** What also a process has that does not own the store. */
export interface ReadDeps extends Pick<StoreState, 'artifacts' | 'documents'> {
  readonly store: Pick<DiskBlobStore, 'stat' | 'open' | 'blobPath'>
  /** Default: nothing is advised. */
  readonly advise?: Advise
}

/**
 * All blobs of an artifact's companions: the documents that list them, the listed files, and the documents that peers get.
 * @throws as `Documents.companions` with these options
 */
export async function companionBlobs(
  state: Pick<ArtifactState, 'companions' | 'source'> | undefined,
  documents: Documents,
  options?: Pick<CompanionsUse, 'strict'>
): Promise<ReadonlySet<Sha256Digest>> {
  const blobs = new Set<Sha256Digest>()
  const { companions = {}, source } = state ?? {}
  const documentsOf = new Set([
    ...Object.values(companions),
    ...(source?.companions === undefined ? [] : [source.companions])
  ])
  for (const digest of documentsOf) {
    const document = await addListed(digest, blobs, documents, options)
    if (document === undefined) continue
    // made when it is first shared
    const given = givenCompanions(document, state!)?.digest
    if (given !== undefined && (await documents.companions(given, { scan: true })) !== undefined) blobs.add(given)
  }
  return blobs
}

/**
 * Adds the blobs of one document of companions, itself among them. @returns it, if it is here
 * @throws as `Documents.companions` with these options
 */
export async function addListed(
  digest: Sha256Digest,
  blobs: Set<Sha256Digest>,
  documents: Documents,
  options?: Pick<CompanionsUse, 'strict'>
): Promise<Companions | undefined> {
  blobs.add(digest)
  const document = await documents.companions(digest, { ...options, scan: true })
  for (const file of document?.files ?? []) blobs.add(file.digest)
  return document
}

/** The companions of an artifact that are here (spec doc.21). */
export interface KeptCompanions {
  readonly digest: Sha256Digest
  /** All that the document lists. */
  readonly listed: Companions['files']
  /** Those that are here. */
  readonly files: Companions['files']
  /** Those whose bytes are lost. */
  readonly missing: Companions['files']
  /** See {@link filesOfCommit}. */
  readonly commitFiles: readonly string[] | undefined
  /** The paths of all that never leave. */
  readonly own: ReadonlySet<string>
  readonly omitted: Companions['omitted']
  /** What its owner chose under this name, if not everything. */
  readonly choice?: OwnersChoice
  /** The problems of a folder without the missing files, for people. */
  readonly warnings: readonly string[]
}

/**
 * The companions under the name that an artifact is asked for by, as far as they are here.
 * @returns `absent` where it has none
 */
export async function keptCompanions(
  asked: RepoId & { readonly ref: string },
  {
    digest: manifestDigest,
    files,
    annotations
  }: Pick<Manifest, 'files' | 'annotations'> & { readonly digest: Sha256Digest },
  { store, artifacts, documents, advise = NO_ADVICE }: ReadDeps
): Promise<KeptCompanions | ({ readonly digest?: undefined } & Pick<KeptCompanions, 'own' | 'warnings'>)> {
  const state = await artifacts.ifReadable(manifestDigest)
  const digest = companionsUnder(state, formatRepoId(asked))
  const document = digest && (await documents.companions(digest))
  const isOfHub = annotations['svc.hf.repo'] !== undefined
  const remedy = isOfHub
    ? advise({ to: 'fetch-companions', ref: formatShortRef(parseRef(asked.ref)) })
    : '; import it again'
  if (state === undefined || digest === undefined || document === undefined)
    return { own: new Set(), warnings: isOfHub ? [WITHOUT + remedy] : [] }
  const { here, missing } = await presentOf(document, store)
  const names = new Set(files.map(({ name }) => name))
  const lost = missing.map(({ path }) => path)
  const warnings = [
    ...(lost.length > 0 ? [`${someOf(lost)} came with the model and are missing now${remedy}`] : []),
    ...(await partsLacking({ ...document, files: here }, names, { store, documents }))
  ]
  const own = new Set(ownCompanions(document, state).map(({ path }) => path))
  return {
    digest,
    listed: document.files,
    files: here,
    missing,
    commitFiles: filesOfCommit(document, { annotations }, state.source),
    own,
    omitted: markedOmissions(document, state),
    ...choiceUnder(state, formatRepoId(asked)),
    warnings
  }
}

/** Every file that a model's commit has at the hub, by what lies beside the model; undefined where that does not tell. */
export function filesOfCommit(
  document: Companions | undefined,
  { annotations }: Pick<Manifest, 'annotations'>,
  source: ArtifactState['source'] | undefined
): readonly string[] | undefined {
  const isOfCommit = source?.kind === 'hf' && source.revision === annotations['svc.hf.revision']
  if (!isOfCommit || document === undefined || document.more !== undefined) return undefined
  return [...document.files, ...document.omitted].map(({ path }) => path)
}

/** The companions whose bytes are here, and those whose are lost. */
export async function presentOf({ files }: Pick<Companions, 'files'>, store: Pick<DiskBlobStore, 'stat'>) {
  const here: Companions['files'][number][] = []
  const missing: Companions['files'][number][] = []
  for (const file of files) {
    if ((await store.stat(file.digest))?.sizeBytes === file.size) here.push(file)
    else missing.push(file)
  }
  return { here, missing }
}

const WITHOUT = 'the files beside the weights at the source (generation_config.json and the like) are missing here'

/** The first few of a list, for a message. */
export const someOf = (names: readonly string[]): string =>
  names.slice(0, 5).map(shortened).join(', ') + (names.length > 5 ? ` and ${names.length - 5} more` : '')

/** Others' documents may have names of megabytes. */
const shortened = (name: string): string => (name.length > 200 ? `${name.slice(0, 200)}…` : name)

const IS_WEIGHTS = /\.(?:safetensors|gguf)$/
/**
 * The parts of a model that its own list of parts names, and whose weights, or whole folders, are not here.
 * @param names of the files that manifests have @throws what reading blobs does
 */
export async function partsLacking(
  { files, omitted, more = 0 }: Pick<Companions, 'files' | 'omitted' | 'more'>,
  names: ReadonlySet<string>,
  { store, documents }: Pick<ReadDeps, 'store' | 'documents'>
): Promise<string[]> {
  const warnings: string[] = []
  for (const { path, digest } of files) {
    if (path !== 'modules.json' && path !== 'model_index.json') continue
    const bytes = await readSmallBlob(store, digest)
    for (const part of bytes === undefined ? [] : await documents.parse('parts', bytes)) {
      const folder = `${part}/`
      const own = [...names].filter((name) => name.startsWith(folder))
      const left = omitted.filter((file) => file.path.startsWith(folder))
      const lacking = left
        .filter(({ path, reason }) => reason !== 'artifact' || (IS_WEIGHTS.test(path) && !names.has(path)))
        .map((file) => file.path)
      const isEmpty = own.length + left.length + more === 0 && !files.some((file) => file.path.startsWith(folder))
      const what = isEmpty ? 'nothing of it is here' : `${someOf(lacking)} is not here`
      if (isEmpty || (lacking.length > 0 && !own.some((name) => IS_WEIGHTS.test(name))))
        warnings.push(`${path} names the part ${part}, but ${what}: the model will not load correctly`)
    }
  }
  return warnings
}
