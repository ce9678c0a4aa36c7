import { realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { ClaimedNames, type CompanionFile, defectOfFileName, type FolderFile, type Manifest } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { openDraft, recoverViews } from './draft.ts'
import { carryOver, finishDraft, withBlobs } from './draft-content.ts'
import { ioError, throwIfAborted, ViewError } from './errors.ts'
import { type HubIdentity, hubCommit, type LayoutWriter, layoutWriter, snapshotFolder } from './layout.ts'
import { type HashedFile, listModel } from './list-model.ts'
import { LIST_RULES, type MarkedFile, type MarkedModel, type Marker, modelsOf, type ViewLayout } from './marker.ts'
import { readOwnView } from './own-view.ts'
import { type Blob, corrupt, isPresent, type ViewMode } from './place.ts'
import { readTarMembers } from './tar-members.ts'
import { checkedTarget, inTurn } from './target.ts'
import { type View, viewOf } from './view.ts'

/** An artifact whose blobs are on disk. */
export interface ViewSource {
  readonly manifest: Pick<Manifest, 'files' | 'annotations'>
  readonly manifestDigest: Sha256Digest
  /** The text of the upstream `config.json` (`upstream` of the model config); absent if there was none. */
  readonly upstreamConfig?: string | undefined
  /** All files beside the artifact's at its source, with their names there; the artifact's own come before them. */
  readonly companions?:
    | { readonly digest: Sha256Digest; readonly files: readonly Pick<CompanionFile, 'path' | 'size' | 'digest'>[] }
    | undefined
  /** Paths of companions that the view does not show; nothing else takes their names. */
  readonly without?: ReadonlySet<string> | undefined
  /** Layout `hf` only: names at the source, by the names in the manifest, where they differ. */
  readonly upstreamNames?: Readonly<Record<string, string>> | undefined
  /** Layout `hf` only: every file that the commit has at the hub, if that is known. */
  readonly commitFiles?: readonly string[] | undefined
  /** Absolute path of a blob's file. It need not exist: absent blobs are reported. */
  blobPath(digest: Sha256Digest): string
}

/** Where and how to make a view. */
export interface ViewOptions {
  /** Absolute; absent, an empty folder of this user, or an earlier view of ours. The parent folder must exist. */
  readonly path: string
  /** Default `files`. */
  readonly layout?: ViewLayout | undefined
  /** Default `symlink`. `hardlink` shares inode and mode with the store, so it has to be requested explicitly. */
  readonly mode?: ViewMode | undefined
  /**
   * A folder that contains both store and view, usually the store's root: links within it are relative, others
   * absolute.
   */
  readonly root?: string | undefined
  /**
   * Layout `hf` only: the repository name to show, `org/name`. Default: the annotation `svc.hf.repo`. The commit is
   * that of `svc.hf.revision`, or else derived from the name: quants that were imported one by one lie side by side.
   */
  readonly repo?: string | undefined
  /**
   * Mode `symlink` only: the blobs of files that the manifest names may be absent; their links lead nowhere until
   * the blobs arrive. Default false.
   */
  readonly mayLack?: boolean | undefined
  /** A program uses an earlier view: it is returned if it is the same and complete, but not replaced. Default false. */
  readonly isHeld?: boolean | undefined
  /** An earlier view there is replaced only if it shows the same model with the same companions. Default false. */
  readonly keepsOthers?: boolean | undefined
  /** False keeps an earlier view that shows another model, unless a hub cache gets one more. Default true. */
  readonly mayReplace?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  /** Called with the bytes of each step of a copy, including shared ones. */
  readonly onCopied?: ((bytes: number) => void) | undefined
}

/** The result of {@link createView}. */
export interface MadeView extends View {
  /** False when the same view was already there, complete, and was left unchanged. */
  readonly made: boolean
}

const REPO = /^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(?:\/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$/

/**
 * Makes a folder that runtimes can load, or adds the model to a hub cache that is a view of ours: weights and all other
 * files under their real names, shards next to each other, the upstream `config.json`, and tokenizer and adapters
 * unpacked. It is built next to its final place and renamed, so that the place always has either the earlier view or
 * the new one (see {@link recoverViews} for a kill between two renames).
 * @throws ViewError `E_MISSING_BLOB`, `E_CORRUPT_BLOB`, `E_BAD_NAME`, `E_BAD_TAR`, `E_BAD_TARGET`, `E_NOT_A_VIEW`,
 *   `E_TAKEN`, `E_NOT_LINKABLE`, `E_NO_SPACE`, `E_IO`, `E_ABORTED`; then nothing is left behind, and an earlier view is unchanged.
 */
export async function createView(source: ViewSource, options: ViewOptions): Promise<MadeView> {
  throwIfAborted(options.signal)
  const target = await checkedTarget(options.path)
  if (target === undefined) {
    const message = `the parent folder of ${options.path} does not exist`
    throw new ViewError('E_BAD_TARGET', message, { path: options.path })
  }
  return inTurn(target, () => createAt(target, source, options))
}

async function createAt(target: string, source: ViewSource, options: ViewOptions): Promise<MadeView> {
  const { layout = 'files', mode = 'symlink', signal } = options
  throwIfAborted(signal)
  const identity = layout === 'hf' ? hubIdentity(source, options.repo) : { repo: '', commit: '' }
  await recoverViews(dirname(target))
  const earlier = await readOwnView(target)
  const models = earlier?.layout === layout ? modelsOf(earlier) : []
  const same = sameModel(models, source, { layout, mode, identity })
  if (same !== undefined && (await isWhole(target, same, source, layout)))
    return { ...viewOf(target, earlier!, same), made: false }
  if (earlier !== undefined)
    requireReplaceable(target, { isSame: same !== undefined, others: othersIn(earlier, layout, source) }, options)
  try {
    await checkBlobs(source, options.mayLack === true && mode === 'symlink')
    const list = await listModel(listedSource(source), source.blobPath)
    const root = options.root === undefined ? undefined : await realpath(options.root)
    const draft = await openDraft(target)
    try {
      const context = { draft: draft.folder, target, mode, root, signal, onCopied: options.onCopied }
      const writer = layoutWriter(layout, context, { ...identity, commitFiles: source.commitFiles })
      const written = await writeFiles(writer, list, namedFor(layout, source), signal)
      const files = layout === 'hf' ? await withBlobs(written, draft.folder) : written
      const others = await writer.finish()
      const { manifestDigest: manifest } = source
      const { digest: companions } = source.companions ?? {}
      const facts = {
        format: 1,
        manifest,
        layout,
        mode,
        rules: LIST_RULES,
        ...(companions !== undefined && { companions })
      } as const
      const latest = { ...facts, folder: writer.folder, files, others }
      const kept = layout === 'hf' ? models.filter((each) => staysBeside(each, latest)) : []
      for (const model of kept) await carryOver(model, target, draft.folder)
      const marker: Marker = kept.length === 0 ? latest : { ...latest, earlier: kept }
      await finishDraft(draft.folder, marker, target)
      throwIfAborted(signal)
      await draft.moveIntoPlace()
      return { ...viewOf(target, marker), made: true }
    } finally {
      await draft.dispose()
    }
  } catch (error) {
    // the only listed names that collide on disk differ just in case, on a file system that ignores case.
    if (errnoOf(error) === 'EEXIST') {
      const message = `two files of the model have one name on the file system of ${target}`
      throw new ViewError('E_BAD_NAME', message, { path: target }, error)
    }
    throw ioError(error, 'make the view', target)
  }
}

/** The other models that go with an earlier view; a hub cache keeps what is in it. */
function othersIn(earlier: Marker, layout: ViewLayout, { manifestDigest }: ViewSource): readonly Sha256Digest[] {
  if (layout === 'hf' && earlier.layout === 'hf') return []
  return modelsOf(earlier)
    .map(({ manifest }) => manifest)
    .filter((manifest) => manifest !== manifestDigest)
}

/** @throws ViewError `E_TAKEN`, `E_BAD_TARGET` for an earlier view that stays */
function requireReplaceable(
  path: string,
  { isSame, others }: { readonly isSame: boolean; readonly others: readonly Sha256Digest[] },
  { keepsOthers, isHeld, mayReplace = true }: ViewOptions
): void {
  if ((!isSame && keepsOthers === true) || (!mayReplace && others.length > 0))
    throw new ViewError('E_TAKEN', `${path} is a view of another model`, { path, candidates: others })
  if (isHeld !== true) return
  const message = `a running program uses the view ${path}, which would have to be made again; try again when it has ended`
  throw new ViewError('E_BAD_TARGET', message, { path })
}

/** Whether an earlier model of a hub cache stays, beside the latest: unless it is that, or all its files are replaced. */
function staysBeside(earlier: MarkedModel, { manifest, folder, files }: MarkedModel): boolean {
  if (earlier.manifest === manifest && earlier.folder === folder) return false
  const names = new Set(files.map(({ at }) => at))
  return !earlier.files.every(({ at }) => names.has(at))
}

/** Only a hub cache has the names of the source: elsewhere those of the manifest are what was handed out. */
const namedFor = (layout: ViewLayout, source: ViewSource): ViewSource =>
  layout === 'hf' ? source : { ...source, upstreamNames: {} }

/** The repository and commit under which a hub cache shows the model. */
function hubIdentity({ manifest }: ViewSource, given: string | undefined): HubIdentity {
  const repo = given ?? manifest.annotations['svc.hf.repo']
  if (repo === undefined || !REPO.test(repo) || repo.includes('--') || repo.includes('..')) {
    const problem = repo === undefined ? 'the model does not come from the hub' : `${JSON.stringify(repo)} is not one`
    throw new ViewError('E_BAD_NAME', `a hub cache needs a repository's name, as in org/name: ${problem}`, {
      ...(repo === undefined ? {} : { name: repo })
    })
  }
  return { repo, commit: hubCommit(repo, manifest.annotations['svc.hf.revision']) }
}

const blobOf = (
  { digest, sizeBytes }: { readonly digest: Sha256Digest; readonly sizeBytes: number },
  source: ViewSource
): Blob => ({
  path: source.blobPath(digest),
  digest,
  sizeBytes
})

const listedSource = ({ companions, ...source }: ViewSource) => ({ ...source, companions: companions?.files })

async function checkBlobs(source: ViewSource, mayLack: boolean): Promise<void> {
  const missing = new Set<string>()
  const check = async ({ digest, size: sizeBytes }: Pick<CompanionFile, 'size' | 'digest'>): Promise<void> => {
    if (!(await isPresent(blobOf({ digest, sizeBytes }, source)))) missing.add(digest)
  }
  for (const file of source.manifest.files) {
    const isUnpacked = file.kind === 'tokenizer' || file.kind === 'adapter'
    if (file.kind !== 'config' && (!mayLack || isUnpacked)) await check(file)
  }
  for (const file of source.companions?.files ?? []) if (source.without?.has(file.path) !== true) await check(file)
  if (missing.size === 0) return
  const message = `${missing.size} of the model's blobs are missing; make it complete first`
  throw new ViewError('E_MISSING_BLOB', message, { missing: [...missing] })
}

const isLeftOut = ({ name, content }: FolderFile, { without }: ViewSource): boolean =>
  content.in === 'blob' && content.isCompanion && without?.has(name) === true

async function writeFiles(
  writer: LayoutWriter,
  list: readonly HashedFile[],
  source: ViewSource,
  signal?: AbortSignal
): Promise<MarkedFile[]> {
  const shown = list.filter((file) => !isLeftOut(file, source))
  const names = upstreamNamesOf(shown, source)
  for (const file of shown) {
    throwIfAborted(signal)
    const { sizeBytes, content } = file
    const name = names.get(file.name)!
    if (content.in === 'blob') await writer.blob(name, blobOf(file, source))
    else if (content.in === 'document') await writer.bytes(name, sizeBytes, [Buffer.from(content.text)])
  }
  const inTars = Map.groupBy(shown, ({ content }) => (content.in === 'tar' ? content.tar : undefined))
  for (const [tar, members] of inTars) {
    if (tar === undefined) continue
    const blob = blobOf({ digest: tar.digest, sizeBytes: tar.size }, source)
    const left = [...members]
    for await (const { name, sizeBytes, bytes } of readTarMembers(blob)) {
      throwIfAborted(signal)
      const listed = left.shift()
      if (listed?.content.in !== 'tar' || listed.content.member !== name)
        throw corrupt(blob, 'changed while it was read')
      await writer.bytes(names.get(listed.name)!, sizeBytes, bytes)
    }
  }
  return shown.map(({ content, digest, ...file }) => ({
    ...file,
    at: placeIn(writer.folder, names.get(file.name)!),
    ...(content.in === 'blob' && { digest })
  }))
}

const placeIn = (folder: string, name: string): string => (folder === '' ? name : `${folder}/${name}`)

/**
 * The names at the source by the names in the list. One that is unusable or taken there says nothing, since a record may
 * come from elsewhere: then the file keeps its own.
 */
function upstreamNamesOf(
  list: readonly Pick<HashedFile, 'name'>[],
  { upstreamNames = {} }: ViewSource
): ReadonlyMap<string, string> {
  const claimed = new ClaimedNames()
  const renamed = ({ name }: Pick<HashedFile, 'name'>): boolean => Object.hasOwn(upstreamNames, name)
  const names = new Map<string, string>()
  for (const { name } of list.filter((file) => !renamed(file))) {
    claimed.claim(name)
    names.set(name, name)
  }
  for (const { name } of list.filter(renamed)) {
    const upstream = upstreamNames[name]!
    const isUsable = defectOfFileName(upstream) === undefined && claimed.claim(upstream) === undefined
    names.set(name, isUsable ? upstream : name)
  }
  return names
}

interface ViewSpec {
  readonly layout: ViewLayout
  readonly mode: ViewMode
  readonly identity: HubIdentity
}

/** The requested model among those of a view; in a hub cache only if its commit is the one that `main` names. */
function sameModel(
  models: readonly MarkedModel[],
  { manifestDigest, companions }: ViewSource,
  { layout, mode, identity }: ViewSpec
): MarkedModel | undefined {
  const folder = layout === 'hf' ? snapshotFolder(identity) : ''
  const latest = models.find((each) => dirname(each.folder) === dirname(folder))
  if (latest?.folder !== folder) return undefined
  return models.find(
    (each) =>
      each.manifest === manifestDigest &&
      each.folder === folder &&
      each.mode === mode &&
      each.companions === companions?.digest
  )
}

/** Kinds of files that companions can be. */
const BESIDE: ReadonlySet<string> = new Set(['companion', 'config'] satisfies FolderFile['kind'][])

/** Whether a model was listed by today's rules, and shows nothing that is left out now. */
const isCurrent = ({ rules, files }: MarkedModel, { without }: ViewSource): boolean =>
  rules === LIST_RULES &&
  !files.some(({ name, kind, digest }) => digest !== undefined && BESIDE.has(kind) && without?.has(name))

async function isWhole(target: string, model: MarkedModel, source: ViewSource, layout: ViewLayout): Promise<boolean> {
  if (!isCurrent(model, source)) return false
  if (layout === 'hf') {
    const names = upstreamNamesOf(model.files, source)
    if (model.files.some(({ name, at }) => at !== placeIn(model.folder, names.get(name)!))) return false
  }
  try {
    for (const { at, sizeBytes, digest } of model.files) {
      const stats = await stat(join(target, at))
      if (!stats.isFile() || stats.size !== sizeBytes) return false
      if (digest === undefined || model.mode === 'copy') continue
      const blob = await stat(source.blobPath(digest))
      if (blob.ino !== stats.ino || blob.dev !== stats.dev) return false
    }
    for (const at of model.others) await stat(join(target, at))
    return true
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP'].includes(errnoOf(error) ?? '')) return false
    throw ioError(error, 'look at the earlier view', target)
  }
}
