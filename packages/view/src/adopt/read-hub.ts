import { type CacheFolder, countOf, isObject, type ParsedObject, textOf } from './cache-folder.ts'
import type { FoundModel } from './found.ts'
import { type Expectation, ModelDraft } from './model-draft.ts'

const COMMIT = /^[0-9a-f]{40}$/

/**
 * A hub cache: every snapshot of every model, starting with that of `refs/main`. A blob's name is its expected digest:
 * SHA-256 for large files, otherwise git's SHA-1. If files lie in the snapshot itself, a listing in `trees/` has their
 * digests.
 */
export async function* readHubCache(folder: CacheFolder): AsyncGenerator<FoundModel> {
  for (const repoFolder of await folder.folders('')) {
    const id = /^models--(.+)$/.exec(repoFolder)?.[1]
    if (id === undefined) continue
    const repo = id.split('--').join('/')
    const refs = await readRefs(folder, `${repoFolder}/refs`)
    const commits = (await folder.folders(`${repoFolder}/snapshots`)).filter((name) => COMMIT.test(name))
    const isMain = (commit: string): number => (refs.get(commit)?.includes('main') === true ? 0 : 1)
    for (const commit of commits.toSorted((a, b) => isMain(a) - isMain(b))) {
      const draft = new ModelDraft('hf', repo, folder)
      const listing = await readListing(draft.folder, `${repoFolder}/trees/${commit}.json`)
      const snapshot = `${repoFolder}/snapshots/${commit}`
      for await (const name of draft.folder.walk(snapshot)) {
        const at = `${snapshot}/${name}`
        await draft.add(name, at, { ...(await expectedByBlob(draft.folder, at)), ...listing.get(name) })
      }
      const [org = '', ...rest] = repo.split('/')
      const words = rest.length === 0 ? { ns: 'hf.co', name: org } : { ns: org, name: rest.join('-') }
      yield* draft.finish(words, { hub: { repo, revision: commit }, refs: refs.get(commit) ?? [] })
    }
  }
}

/** Branches and tags by commit. */
async function readRefs(folder: CacheFolder, at: string): Promise<Map<string, string[]>> {
  const refs = new Map<string, string[]>()
  for await (const name of folder.walk(at, 4)) {
    const commit = (await folder.text(`${at}/${name}`))?.trim() ?? ''
    if (COMMIT.test(commit)) refs.set(commit, [...(refs.get(commit) ?? []), name])
  }
  return refs
}

/**
 * Uses the name of the blob that the snapshot's link points to. Only one step is followed: the blob may be a link into
 * the store that repositories share, where names are hashes of another kind.
 */
async function expectedByBlob(folder: CacheFolder, at: string): Promise<Expectation> {
  const name = /^models--[^/]+\/blobs\/([0-9a-f]+)$/.exec((await folder.linkTarget(at)) ?? '')?.[1]
  if (name?.length === 64) return { sha256: name }
  return name?.length === 40 ? { gitSha1: name } : {}
}

/** `trees/<commit>.json`, format 1. */
async function readListing(folder: CacheFolder, at: string): Promise<Map<string, Expectation>> {
  const listing = new Map<string, Expectation>()
  const document = await folder.json(at, true)
  if (document?.format_version !== 1 || !isObject(document.files)) return listing
  for (const [name, file] of Object.entries(document.files)) {
    if (isObject(file)) listing.set(name, expectedByListing(file))
  }
  return listing
}

function expectedByListing(file: ParsedObject): Expectation {
  const sha256 = textOf(file.lfs_sha256)
  const sizeBytes = countOf(sha256 === undefined ? file.size : (file.lfs_size ?? file.size))
  return {
    ...(sizeBytes === undefined ? {} : { sizeBytes }),
    // for large files git's name is that of a pointer, which says nothing about the bytes.
    ...(sha256 === undefined ? { sha256: undefined, gitSha1: textOf(file.blob_id) } : { sha256, gitSha1: undefined })
  }
}
