import {
  type ArtifactState,
  companionsUnder,
  type LeftOut,
  modifiedAt,
  type UpstreamFile,
  type UpstreamRepo,
  upstreamName
} from '@svc/library/parts'
import { LRUCache } from 'lru-cache'
import type { ArtifactFiles } from './artifact-files.ts'
import type { ServedFile } from './served-files.ts'
import type { ServedModels } from './served-models.ts'
import { heapBytesOf } from './upstream.ts'

/** The names by which clients request the default branch. */
export const DEFAULT_BRANCH = new Set(['main', 'HEAD'])

/** Limit of the names of known files, with their entries. */
const MAX_BYTES = 32 << 20

/** A repository of the hub at one commit, as far as it was imported. */
export interface HubRevision {
  /** Unique in this process. */
  readonly id: number
  /** The states it was derived from: it is valid while these are unchanged. */
  readonly states: readonly ArtifactState[]
  readonly lists: readonly (readonly ServedFile[])[]
  readonly repo: string
  readonly commit: string
  /** By upstream name, sorted. */
  readonly files: ReadonlyMap<string, RepoFile>
  /** The folders of these files, each with a trailing slash. */
  readonly folders: ReadonlySet<string>
  /** Undefined for imports from before it was recorded. */
  readonly leftOut: LeftOut | undefined
  /** UTC, RFC 3339. */
  readonly modifiedAt: string | undefined
  /** The default branch, and when the hub said that this is its commit. */
  readonly branch: { readonly name: string; readonly at: string } | undefined
  /** The source of the files that are not here. */
  readonly upstream?: UpstreamRepo
}

/** A stored file, or one that could be fetched. */
export type RepoFile = ServedFile | UpstreamFile

/** The hub repositories that are here, by commit. */
export class HubRevisions {
  readonly #served: ServedModels
  readonly #files: ArtifactFiles
  readonly #known = new LRUCache<string, HubRevision>({ maxSize: MAX_BYTES, sizeCalculation: heapBytesOf })
  readonly #joins = new WeakMap<
    UpstreamRepo,
    { readonly here: HubRevision | undefined; readonly joined: HubRevision }
  >()
  #made = 0

  constructor(served: ServedModels, files: ArtifactFiles) {
    this.#served = served
    this.#files = files
  }

  /** With the files that could be fetched. */
  joined(here: HubRevision | undefined, upstream: UpstreamRepo): HubRevision {
    const known = this.#joins.get(upstream)
    if (known !== undefined && known.here === here) return known.joined
    const files = new Map<string, RepoFile>([...upstream.files, ...(here?.files ?? [])])
    const sorted = new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    const { repo, commit } = upstream
    const facts = here ?? { states: [], lists: [], repo, commit, modifiedAt: undefined, branch: undefined }
    const folders = foldersOf(sorted.keys())
    const leftOut = without(upstream.leftOut, sorted)
    const joined = { ...facts, id: ++this.#made, files: sorted, folders, leftOut, upstream }
    this.#joins.set(upstream, { here, joined })
    return joined
  }

  /**
   * All artifacts of a repository at a commit. `main` is the commit that the hub last named for its branch; if it never
   * named one, that of the owner's latest import (spec add.41). Another
   * name is that of a branch or tag that a model here follows, or unknown.
   */
  async at(repo: string, revision: string): Promise<HubRevision | undefined> {
    const here = await this.#served.ofRepo(repo.toLowerCase())
    const coming = await this.#served.comingOfRepo(repo.toLowerCase())
    const all = [...here, ...coming]
    // the local commit of the branch stays visible while a newer one, which may take hours, arrives
    const first = DEFAULT_BRANCH.has(revision)
      ? (latestOfBranch(here) ?? latestOfBranch(coming))
      : all.find(({ source }) => source.revision === revision || followedBy(source).includes(revision))
    if (first === undefined) return undefined
    const commit = first.source.revision!
    const states = all.filter(({ source }) => source.revision === commit)
    const lists: (readonly ServedFile[])[] = []
    for (const state of states) {
      // those for which the rule was checked
      const companions = companionsUnder(state)
      const shown = { manifest: state.manifestDigest, companions }
      lists.push((await this.#files.of({ name: state.source.repo!, ...shown })) ?? NONE)
    }
    const key = `${repo.toLowerCase()} ${commit}`
    const known = this.#known.get(key)
    if (known !== undefined && same(known.states, states) && same(known.lists, lists)) return known
    const files = new Map<string, ServedFile>()
    // local ones come last, and win
    for (const [i, state] of [...states.entries()].reverse())
      for (const file of lists[i]!) files.set(upstreamName(state.source, file.name), file)
    if (files.size === 0) return undefined
    const sorted = new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    const folders = foldersOf(sorted.keys())
    const branch = branchOf(states)
    const facts = {
      id: ++this.#made,
      states,
      lists,
      repo: first.source.repo!,
      commit,
      modifiedAt: modifiedAt(first),
      branch
    }
    const found: HubRevision = { ...facts, files: sorted, folders, leftOut: await this.#leftOut(states, sorted) }
    this.#known.set(key, found)
    return found
  }

  /** The branches and tags of a repository that models here follow, each with the commit of the latest import. */
  async followed(repo: string): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>()
    for (const { source } of await this.#served.ofRepo(repo.toLowerCase()))
      for (const name of followedBy(source)) if (!found.has(name)) found.set(name, source.revision!)
    return found
  }

  async #leftOut(states: readonly ArtifactState[], files: HubRevision['files']): Promise<LeftOut | undefined> {
    // one commit has one answer, whatever was chosen
    for (const state of states) {
      const beside = await this.#served.companionsOf(state)
      if (beside === undefined) continue
      const reasons = new Map(beside.omitted.map(({ path, reason }) => [path, reason]))
      return without({ reasons, more: beside.more ?? 0 }, files)
    }
    return undefined
  }
}

const without = ({ reasons, more }: LeftOut, files: HubRevision['files']): LeftOut => ({
  reasons: new Map([...reasons].filter(([name]) => !files.has(name))),
  more
})

/** Without the default branch, which has a rule of its own. */
const followedBy = ({ followed = {} }: ArtifactState['source']): readonly string[] =>
  Object.values(followed).filter((name) => name !== '' && !DEFAULT_BRANCH.has(name))

/** @param all the latest import first */
function latestOfBranch(all: readonly ArtifactState[]): ArtifactState | undefined {
  const named = all.filter(({ source }) => source.branch !== undefined)
  const at = ({ source: { branchAt = '' } }: ArtifactState): string => branchAt
  if (named.length > 0) return named.reduce((latest, state) => (at(state) > at(latest) ? state : latest))
  return all.find(({ source }) => source.onDemand !== true)
}

function branchOf(states: readonly ArtifactState[]): HubRevision['branch'] {
  const { branch: name, branchAt: at } = latestOfBranch(states)?.source ?? {}
  return name === undefined || at === undefined ? undefined : { name, at }
}

const NONE: readonly ServedFile[] = []

function foldersOf(names: Iterable<string>): ReadonlySet<string> {
  const folders = new Set<string>()
  for (const name of names)
    for (let slash = name.indexOf('/'); slash >= 0; slash = name.indexOf('/', slash + 1))
      folders.add(name.slice(0, slash + 1))
  return folders
}

const same = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((each, i) => each === b[i])

export const isUpstream = (file: RepoFile): file is UpstreamFile => 'isLarge' in file
