import { createHash } from 'node:crypto'
import { rename, rm, symlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { isLinkRefused, makeFolders, openRegular, readChunks } from '@svc/internal-files'
import type { ViewLayout } from './marker.ts'
import { type Blob, type PlaceContext, placeBlob } from './place.ts'
import { formatTree, type TreeFile, treeAt, treeFile } from './tree-listing.ts'
import { type ByteChunks, gitBlobHash, writeNewFile } from './written-file.ts'

/** Places the files of a view according to a layout. The names have been claimed before. */
export interface LayoutWriter {
  /** Below the view's folder: the folder to pass to a runtime. */
  readonly folder: string
  blob(name: string, blob: Blob): Promise<void>
  /** Writes exactly `sizeBytes` bytes; otherwise the caller discards the view. */
  bytes(name: string, sizeBytes: number, source: ByteChunks): Promise<void>
  /** Writes the last files. @returns those that do not belong to the model, below the view's folder */
  finish(): Promise<string[]>
}

export interface LayoutContext extends PlaceContext {
  /** The folder in which files are made. */
  readonly draft: string
  /** The final place of the view; a real path. */
  readonly target: string
}

export interface HubIdentity {
  /** `org/name`, or just a name, for very old models. */
  readonly repo: string
  /** 40 hexadecimal digits. */
  readonly commit: string
}

/** The folder of a model in a hub cache, below that. */
export const snapshotFolder = ({ repo, commit }: HubIdentity): string => `${repoFolder(repo)}/snapshots/${commit}`

/** The folder of a repository in a hub cache. */
export const repoFolder = (repo: string): string => `models--${repo.replaceAll('/', '--')}`

/** The commit of a repository in a hub cache: that of the hub, or one made from the name for what never was there. */
export const hubCommit = (repo: string, revision = ''): string =>
  /^[0-9a-f]{40}$/.test(revision) ? revision : createHash('sha1').update(repo).digest('hex')

/** The commit that a hub cache shows. */
export interface ShownCommit extends HubIdentity {
  /** Every file that it has at the hub, if that is known. */
  readonly commitFiles: readonly string[] | undefined
}

export function layoutWriter(layout: ViewLayout, context: LayoutContext, commit: ShownCommit): LayoutWriter {
  return layout === 'files' ? new FilesLayout(context) : new HubLayout(context, commit)
}

class FilesLayout implements LayoutWriter {
  readonly folder = ''
  readonly #context: LayoutContext

  constructor(context: LayoutContext) {
    this.#context = context
  }

  async blob(name: string, blob: Blob): Promise<void> {
    const { draft, target } = this.#context
    await makeFolders(dirname(join(draft, name)))
    await placeBlob(blob, { to: join(draft, name), finalPath: join(target, name) }, this.#context)
  }

  async bytes(name: string, _sizeBytes: number, source: ByteChunks): Promise<void> {
    const path = join(this.#context.draft, name)
    await makeFolders(dirname(path))
    await writeNewFile(path, source, [], this.#context)
  }

  async finish(): Promise<string[]> {
    return []
  }
}

/**
 * A hub cache: `models--org--name/blobs/<etag>` with the bytes, `snapshots/<commit>/<name>` as relative links to them,
 * `refs/main`. On a file system without symbolic links the bytes lie in `snapshots/`, as with the hub's own clients. A
 * commit that is there whole has its listing in `trees/`: of another, clients would take it for all that there is.
 */
class HubLayout implements LayoutWriter {
  readonly folder: string
  readonly #repo: string
  readonly #commit: string
  readonly #context: LayoutContext
  /** Etags of the files in `blobs/`. */
  readonly #blobs = new Set<string>()
  readonly #commitFiles: readonly string[] | undefined
  readonly #tree = new Map<string, TreeFile>()

  constructor(context: LayoutContext, commit: ShownCommit) {
    this.#context = context
    this.#repo = repoFolder(commit.repo)
    this.#commit = commit.commit
    this.#commitFiles = commit.commitFiles
    this.folder = snapshotFolder(commit)
  }

  async blob(name: string, blob: Blob): Promise<void> {
    const etag = isInLargeFileStorage(name, blob.sizeBytes) ? blob.digest.slice(7) : await gitNameOf(blob)
    const at = `${this.#repo}/blobs/${etag}`
    this.#tree.set(name, treeFile(etag, blob.sizeBytes))
    await this.#snapshot(name, etag, async (path) => {
      await placeBlob(blob, { to: path, finalPath: join(this.#context.target, at) }, this.#context)
    })
  }

  async bytes(name: string, sizeBytes: number, source: ByteChunks): Promise<void> {
    const folder = join(this.#context.draft, this.#repo, 'blobs')
    await makeFolders(folder)
    const incoming = join(folder, 'incoming')
    const hash = isInLargeFileStorage(name, sizeBytes) ? createHash('sha256') : gitBlobHash(sizeBytes)
    const { hashes } = await writeNewFile(incoming, source, [hash], this.#context)
    this.#tree.set(name, treeFile(hashes[0]!, sizeBytes))
    await this.#snapshot(name, hashes[0]!, (path) => rename(incoming, path))
    await rm(incoming, { force: true })
  }

  async #snapshot(name: string, etag: string, make: (path: string) => Promise<void>): Promise<void> {
    const { draft } = this.#context
    const path = join(draft, this.#repo, 'blobs', etag)
    const link = join(draft, this.folder, name)
    await makeFolders(dirname(path))
    await makeFolders(dirname(link))
    if (!this.#blobs.has(etag)) await make(path)
    try {
      await symlink(relative(dirname(link), path), link)
      this.#blobs.add(etag)
    } catch (error) {
      if (!isLinkRefused(error)) throw error
      await rename(path, link)
    }
  }

  async finish(): Promise<string[]> {
    const ref = `${this.#repo}/refs/main`
    const path = join(this.#context.draft, ref)
    await makeFolders(dirname(path))
    await writeNewFile(path, [Buffer.from(this.#commit)])
    return [ref, ...(await this.#listing()), ...[...this.#blobs].map((etag) => `${this.#repo}/blobs/${etag}`)]
  }

  async #listing(): Promise<readonly string[]> {
    if (this.#commitFiles?.every((name) => this.#tree.has(name)) !== true) return []
    const at = treeAt(this.#repo, this.#commit)
    await makeFolders(dirname(join(this.#context.draft, at)))
    await writeNewFile(join(this.#context.draft, at), [Buffer.from(formatTree(this.#tree))])
    return [at]
  }
}

async function gitNameOf(blob: Blob): Promise<string> {
  await using handle = await openRegular(blob.path)
  const hash = gitBlobHash(blob.sizeBytes)
  for await (const chunk of readChunks(handle)) hash.update(chunk)
  return hash.digest('hex')
}

/** Extensions that the hub's default `.gitattributes` keeps in large-file storage. */
const LARGE_ENDINGS = new Set(
  (
    '7z arrow bin bz2 ckpt ftz gguf gz h5 joblib mlmodel model msgpack npy npz onnx ot parquet pb pickle pkl pt pth rar ' +
    'safetensors tar tflite tgz wasm xz zip zst'
  ).split(' ')
)
/** The hub's limit for files in git itself. */
const LARGE_BYTES = 10 * 1024 * 1024

/**
 * Whether the hub names this file by its SHA-256 (large-file storage) or by git's SHA-1. The artifact does not record
 * that, so the hub's defaults are assumed. Offline nobody checks; online a wrong guess costs one small download.
 */
export function isInLargeFileStorage(name: string, sizeBytes: number): boolean {
  const base = name.slice(name.lastIndexOf('/') + 1)
  return sizeBytes > LARGE_BYTES || LARGE_ENDINGS.has(base.slice(base.lastIndexOf('.') + 1))
}
