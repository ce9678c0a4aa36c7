import { createHash } from 'node:crypto'
import { realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import type { CompanionFile, Manifest, ManifestFile } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { openDraft, recoverViews } from './draft.ts'
import { carryOver, finishDraft, withBlobs } from './draft-content.ts'
import { ioError, throwIfAborted, ViewError } from './errors.ts'
import { type HubIdentity, type LayoutWriter, layoutWriter, snapshotFolder } from './layout.ts'
import { MARKER, type MarkedFile, type MarkedModel, type Marker, modelsOf, type ViewLayout } from './marker.ts'
import { badName, ClaimedNames } from './names.ts'
import { readOwnView } from './own-view.ts'
import { type Blob, isPresent, type ViewMode } from './place.ts'
import { readTarMembers } from './tar-members.ts'
import { checkedTarget, inTurn } from './target.ts'
import { type View, viewOf } from './view.ts'
import type { ByteChunks } from './written-file.ts'

/** An artifact whose blobs are on disk. */
export interface ViewSource {
  readonly manifest: Pick<Manifest, 'files' | 'annotations'>
  readonly manifestDigest: Sha256Digest
  /** The text of the upstream `config.json` (`upstream` of the model config); absent if there was none. */
  readonly upstreamConfig?: string | undefined
  /** Files beside the artifact's at its source, with their names there; the artifact's own come before them. */
  readonly companions?:
    | { readonly digest: Sha256Digest; readonly files: readonly Pick<CompanionFile, 'path' | 'size' | 'digest'>[] }
    | undefined
  /** Absolute path of a blob's file. It need not exist: absent blobs are reported. */
  blobPath(digest: Sha256Digest): string
}

/** Where and how to make a view. */
export interface ViewOptions {
  /** Absolute; absent, or an earlier view of ours. The parent folder must exist. */
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
 *   `E_NOT_LINKABLE`, `E_NO_SPACE`, `E_IO`, `E_ABORTED`; then nothing is left behind, and an earlier view is unchanged.
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
  if (same !== undefined && (await isWhole(target, same, source)))
    return { ...viewOf(target, earlier!, same), made: false }
  try {
    await checkBlobs(source, options.mayLack === true && mode === 'symlink')
    const root = options.root === undefined ? undefined : await realpath(options.root)
    const draft = await openDraft(target)
    try {
      const context = { draft: draft.folder, target, mode, root, signal, onCopied: options.onCopied }
      const writer = layoutWriter(layout, context, identity)
      const written = await writeFiles(writer, source, signal)
      const files = layout === 'hf' ? await withBlobs(written, draft.folder) : written
      const others = await writer.finish()
      const { manifestDigest: manifest } = source
      const { digest: companions } = source.companions ?? {}
      const facts = { format: 1, manifest, layout, mode, ...(companions !== undefined && { companions }) } as const
      const latest = { ...facts, folder: writer.folder, files, others }
      const kept = layout === 'hf' ? models.filter((each) => !isCovered(each, files)) : []
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
    // The only names that collide on disk but not in ClaimedNames differ just in case, on a file system that ignores
    // case.
    if (errnoOf(error) === 'EEXIST') {
      const message = `two files of the model have one name on the file system of ${target}`
      throw new ViewError('E_BAD_NAME', message, { path: target }, error)
    }
    throw ioError(error, 'make the view', target)
  }
}

/** Whether a newer model has every file of an earlier one, as when the same model is made again. */
function isCovered(earlier: MarkedModel, files: readonly MarkedFile[]): boolean {
  const names = new Set(files.map(({ at }) => at))
  return earlier.files.every(({ at }) => names.has(at))
}

/** The repository and commit under which a hub cache shows the model. */
function hubIdentity({ manifest }: ViewSource, given: string | undefined): HubIdentity {
  const repo = given ?? manifest.annotations['svc.hf.repo']
  if (repo === undefined || !REPO.test(repo) || repo.includes('--') || repo.includes('..')) {
    const problem = repo === undefined ? 'the model does not come from the hub' : `${JSON.stringify(repo)} is not one`
    throw new ViewError('E_BAD_NAME', `a hub cache needs a repository's name, as in org/name: ${problem}`, {
      ...(repo === undefined ? {} : { name: repo })
    })
  }
  const revision = manifest.annotations['svc.hf.revision'] ?? ''
  return { repo, commit: /^[0-9a-f]{40}$/.test(revision) ? revision : createHash('sha1').update(repo).digest('hex') }
}

const blobOf = ({ digest, size }: Pick<ManifestFile, 'digest' | 'size'>, source: ViewSource): Blob => ({
  path: source.blobPath(digest),
  digest,
  sizeBytes: size
})

async function checkBlobs(source: ViewSource, mayLack: boolean): Promise<void> {
  const missing = new Set<string>()
  for (const file of source.manifest.files) {
    if (file.kind === 'config' || (mayLack && tarFolder(file) === undefined)) continue
    if (!(await isPresent(blobOf(file, source)))) missing.add(file.digest)
  }
  for (const file of source.companions?.files ?? [])
    if (!(await isPresent(blobOf(file, source)))) missing.add(file.digest)
  if (missing.size === 0) return
  const message = `${missing.size} of the model's blobs are missing; make it complete first`
  throw new ViewError('E_MISSING_BLOB', message, { missing: [...missing] })
}

/** The folder that a tar is unpacked into, with a trailing slash; undefined for other files. */
function tarFolder({ kind, name }: ManifestFile): string | undefined {
  if (kind !== 'tokenizer' && kind !== 'adapter') return undefined
  return name.slice(0, name.lastIndexOf('/') + 1)
}

async function writeFiles(writer: LayoutWriter, source: ViewSource, signal?: AbortSignal): Promise<MarkedFile[]> {
  const names = new ClaimedNames([MARKER])
  const files: MarkedFile[] = []
  /** @returns why it cannot have its name; then it is not written */
  const tryWrite = async (file: Omit<MarkedFile, 'at'>, content: Blob | ByteChunks): Promise<string | undefined> => {
    throwIfAborted(signal)
    const { name, ...facts } = file
    const defect = names.claim(name)
    if (defect !== undefined) return defect
    if ('path' in content) await writer.blob(name, content)
    else await writer.bytes(name, facts.sizeBytes, content)
    files.push({ name, at: writer.folder === '' ? name : `${writer.folder}/${name}`, ...facts })
    return undefined
  }
  const write = async (file: Omit<MarkedFile, 'at'>, content: Blob | ByteChunks): Promise<void> => {
    const defect = await tryWrite(file, content)
    if (defect !== undefined) throw badName(file.name, defect)
  }
  const companions = source.companions?.files ?? []
  const config = { name: 'config.json', kind: 'config' } as const
  // the text in the model config may differ in what has no meaning, such as a byte order mark
  const upstream = companions.find(({ path }) => path === config.name)
  if (upstream !== undefined) await write({ ...config, sizeBytes: upstream.size }, blobOf(upstream, source))
  else if (source.upstreamConfig !== undefined) {
    const bytes = Buffer.from(source.upstreamConfig)
    await write({ ...config, sizeBytes: bytes.length }, [bytes])
  }
  for (const file of source.manifest.files) {
    // The model config is an internal document, unknown to runtimes.
    if (file.kind === 'config') continue
    const { size: sizeBytes, kind, role, variant, part, digest } = file
    const folder = tarFolder(file)
    if (folder === undefined) {
      const facts = {
        sizeBytes,
        kind,
        digest,
        ...(role === undefined ? {} : { role }),
        ...(variant === undefined ? {} : { variant }),
        ...(part === undefined ? {} : { part })
      }
      await write({ name: file.name, ...facts }, blobOf(file, source))
      continue
    }
    for await (const member of readTarMembers(blobOf(file, source)))
      await write({ name: folder + member.name, sizeBytes: member.sizeBytes, kind }, member.bytes)
  }
  for (const file of companions) {
    const { path: name, size: sizeBytes, digest } = file
    await tryWrite({ name, sizeBytes, kind: 'companion', digest }, blobOf(file, source))
  }
  return files
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

async function isWhole(target: string, model: MarkedModel, source: ViewSource): Promise<boolean> {
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
