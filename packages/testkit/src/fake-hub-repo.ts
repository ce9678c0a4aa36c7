import { createHash } from 'node:crypto'
import { type ContentNames, contentSize, type FakeContent, lfsPointer, nameContent } from './fake-hub-content.ts'
import type { FakeTreeEntry } from './fake-hub-faults.ts'

export interface FakeRepoFile {
  readonly path: string
  readonly content: FakeContent
  /** In large-file storage, behind a CDN; otherwise in git. Default: above 10 KiB. */
  readonly lfs?: boolean
  /** Listed with its digest and size by somebody who never had it: zeros are sent. */
  readonly isNeverGiven?: boolean
}
export interface FakeRepo {
  /** In its own spelling; requests may use any case. */
  readonly id: string
  readonly files: readonly FakeRepoFile[]
  readonly private?: boolean
  readonly gated?: false | 'auto' | 'manual'
  /** Masks the hashes in a gated repository's listing for users without access. */
  readonly maskHashes?: boolean
  readonly disabled?: boolean
  /** Default `main`. */
  readonly branch?: string
  /** Of its card, e.g. `license:mit`; what its files tell is added. */
  readonly tags?: readonly string[]
  /** As the hub counts them from the headers. */
  readonly parameters?: number
  readonly downloads?: number
  /** An old name that redirects here. */
  readonly formerId?: string
}

/** A file of a commit, with its names. */
export interface Entry extends FakeRepoFile, ContentNames {
  readonly sizeBytes: number
  readonly isLfs: boolean
  readonly xetHash: string
}
export interface Commit {
  readonly sha: string
  readonly repo: FakeRepo
  readonly entries: ReadonlyMap<string, Entry>
}

/** @param xetHashOf stores a large file's bytes with the service of chunks, where there is one */
export function commitOf(repo: FakeRepo, xetHashOf?: (content: FakeContent) => string): Commit {
  const entries = new Map<string, Entry>()
  const hash = createHash('sha1').update(repo.id)
  for (const file of repo.files) {
    const sizeBytes = contentSize(file.content)
    const names = nameContent(file.content)
    const isLfs = file.lfs ?? sizeBytes > 10_240
    const xetHash = (isLfs ? xetHashOf?.(file.content) : undefined) ?? names.sha256.split('').reverse().join('')
    entries.set(file.path, { ...file, ...names, sizeBytes, isLfs, xetHash })
    hash.update(`${file.path}\0${names.sha256}\n`)
  }
  return { sha: hash.digest('hex'), repo, entries }
}

/** The entries of a whole tree, as hubs list them; masked hashes are asterisks. */
export function treeOf({ entries }: Commit, masked: boolean): FakeTreeEntry[] {
  const tree: FakeTreeEntry[] = []
  const folders = new Set<string>()
  for (const entry of entries.values()) {
    const parents = entry.path.split('/').slice(0, -1)
    for (let i = 1; i <= parents.length; i++) folders.add(parents.slice(0, i).join('/'))
    const { path, sizeBytes: size, sha256, gitBlobSha1, xetHash } = entry
    if (!entry.isLfs) tree.push({ type: 'file', oid: gitBlobSha1, size, path })
    else {
      const { oid, pointerSize } = lfsPointer(sha256, size)
      const lfs = { oid: masked ? '*'.repeat(64) : sha256, size, pointerSize }
      tree.push({ type: 'file', oid, size, path, lfs, xetHash })
    }
  }
  for (const path of folders) {
    tree.push({ type: 'directory', oid: createHash('sha1').update(path).digest('hex'), size: 0, path })
  }
  return tree
}

/** What the hub tells of a repository, and what its card does. */
export function tagsOf({ repo, entries }: Commit): string[] {
  const formats = ['gguf', 'safetensors'].filter((format) =>
    [...entries.keys()].some((path) => path.endsWith(`.${format}`))
  )
  return [...formats, ...(repo.tags ?? [])]
}

const UNITS: Readonly<Record<string, number>> = { '': 1, K: 1e3, M: 1e6, B: 1e9 }

/** Whether a search of the hub finds a repository. */
export function isFound(commit: Commit, query: URLSearchParams): boolean {
  const { id, parameters = 0 } = commit.repo
  const tags = tagsOf(commit)
  const words = (query.get('search') ?? '').toLowerCase().split(/\s+/)
  const bounds = (query.get('num_parameters') ?? '').split(',').map((text) => /^(min|max):([\d.]+)([KMB]?)$/.exec(text))
  return (
    words.every((word) => id.toLowerCase().includes(word)) &&
    query.getAll('filter').every((tag) => tags.includes(tag)) &&
    bounds.every((bound) => {
      const count = Number(bound?.[2]) * UNITS[bound?.[3] ?? '']!
      return bound === null || (bound[1] === 'min' ? parameters >= count : parameters <= count)
    })
  )
}

/** A repository in the answer to a search, with the fields that `expand[]` names. */
export function searchEntry(commit: Commit, expand: readonly string[]): Record<string, unknown> {
  const { id, gated = false, private: isPrivate = false, parameters, downloads = 0 } = commit.repo
  const all: Record<string, unknown> = {
    tags: tagsOf(commit),
    downloads,
    gated,
    private: isPrivate,
    lastModified: '2026-01-01T00:00:00.000Z',
    safetensors: parameters === undefined ? undefined : { parameters: { BF16: parameters }, total: parameters }
  }
  const wanted = Object.entries(all).filter(([key]) => expand.includes(key))
  return { _id: commit.sha.slice(0, 24), id, modelId: id, ...Object.fromEntries(wanted) }
}
