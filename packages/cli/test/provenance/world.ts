import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { V1Swarm } from '@svc/swarm-v1'
import { type FakeBucket, startFakeBucket } from '@svc/testkit/fake-bucket'
import { type FakeCatalog, startFakeCatalog } from '@svc/testkit/fake-catalog'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { type FakeRegistry, startFakeRegistry } from '@svc/testkit/fake-registry'
import type { Beside } from './oracle.ts'
import {
  gitSha1,
  isLfs,
  pick,
  type Random,
  type TaggedFile,
  type TaggedModel,
  taggedModel,
  torrentOf
} from './tagged.ts'

export const TOKEN = 'token-of-the-owner'

/** A repository of the hub. */
export interface Repo {
  readonly number: number
  /** The latest name first; the others redirect there. */
  readonly names: string[]
  /** Commits, the latest last, with what is listed and what of it can be had. */
  readonly commits: {
    readonly sha: string
    readonly files: readonly TaggedFile[]
    readonly given: ReadonlySet<string>
  }[]
  access: 'public' | 'gated' | 'private'
  /** Digests that it listed while everybody might look. */
  readonly listed: Set<string>
}

/** What was written for others to import. */
export interface Parcel extends Beside {
  readonly manifest: string
  readonly infohash: string
  /** `held`: whoever packed it might not pass it on, and said so; `given`: others may have it; else undecided. */
  readonly standing: 'given' | 'held' | 'either'
}

export interface Layout extends Parcel {
  readonly path: string
}
export interface Image extends Parcel {
  readonly image: string
  readonly repository: string
}
export interface Publication extends Parcel {
  readonly part: 'open' | 'keyed'
}

interface Services {
  readonly hub: FakeHub
  readonly registry: FakeRegistry
  readonly bucket: FakeBucket
  readonly catalog: FakeCatalog
  readonly seed: V1Swarm
}

const OWNERS = ['acme', 'evil'] as const
/** What machines may bring in on demand. */
export const ALLOWED = 'acme/*'

/** Of the files of a commit, those that the hub gives. */
export const givenIn = ({ commits }: Repo, files: readonly TaggedFile[]): TaggedFile[] =>
  files.filter(({ tag }) => commits.some(({ given }) => given.has(tag)))

/** Everything outside the machines: a hub, a registry, a bucket, a catalog with a seed, and folders of other tools. */
export class World {
  readonly folder: string
  readonly hub: FakeHub
  readonly registry: FakeRegistry
  readonly bucket: FakeBucket
  readonly catalog: FakeCatalog
  readonly #seed: V1Swarm
  readonly #seeded = new Set<string>()
  readonly repos: Repo[] = []
  readonly layouts: Layout[] = []
  readonly images: Image[] = []
  readonly publications: Publication[] = []
  readonly closed = new Set<string>()
  /** The owner's own models. */
  readonly own: readonly TaggedModel[]
  #models = 0
  #onGiven: (repo: number, tag: string) => void = () => undefined

  private constructor(folder: string, { hub, registry, bucket, catalog, seed }: Services) {
    this.folder = folder
    this.hub = hub
    this.registry = registry
    this.bucket = bucket
    this.catalog = catalog
    this.#seed = seed
    this.own = Array.from({ length: 5 }, () => this.newModel())
  }

  static async start(folder: string): Promise<World> {
    for (const part of ['open', 'keyed']) mkdirSync(join(folder, 'bucket', part), { recursive: true })
    let world: World | undefined
    const hub = await startFakeHub({
      tokens: [TOKEN],
      onGiven: ({ repoId, sha256, isPublic }) => isPublic && world?.gave(repoId, sha256)
    })
    world = new World(folder, {
      hub,
      registry: await startFakeRegistry(),
      bucket: await startFakeBucket(join(folder, 'bucket')),
      catalog: await startFakeCatalog(),
      seed: await V1Swarm.start({
        peerAddress: { host: '127.0.0.1', port: 0 },
        dht: false,
        policy: 'machine',
        uploadLimitBytesPerSecond: 0
      })
    })
    for (let number = 0; number < 4; number++) world.addRepo(number)
    return world
  }

  /** Told of what the hub gives while everybody may have it. */
  onGiven(listener: (repo: number, tag: string) => void): void {
    this.#onGiven = listener
  }

  gave(repoId: string, sha256: string): void {
    const repo = this.repoNamed(repoId)
    for (const { files } of repo?.commits ?? [])
      for (const file of files) if (file.sha256 === sha256) this.#onGiven(repo!.number, file.tag)
  }

  newModel(): TaggedModel {
    return taggedModel(this.#models++)
  }

  repoNamed(name: string): Repo | undefined {
    return this.repos.find(({ names }) => names.some((each) => each.toLowerCase() === name.toLowerCase()))
  }

  addRepo(number: number): void {
    const isAllowed = number % 2 === 0
    // what may not be brought in is asked for by a former name that may
    const names = isAllowed ? [`acme/Model-${number}`] : [`evil/Model-${number}`, `acme/Former-${number}`]
    const repo: Repo = { number, names, commits: [], access: 'public', listed: new Set() }
    this.repos.push(repo)
    this.commit(repo, this.newModel().files, [])
  }

  /** Of `foreign` files the digests are listed: whoever listed them never had the bytes of most. */
  commit(repo: Repo, files: readonly TaggedFile[], foreign: readonly TaggedFile[]): void {
    // bytes that the repository has had are its own: the hub gives them at every commit that lists them
    const named = foreign.filter(({ tag }) => !repo.commits.some(({ given }) => given.has(tag)))
    const of = (file: TaggedFile, isNeverGiven: boolean) => ({
      path: file.name,
      content: file.bytes,
      // the listing has the SHA-256 of what it only names
      lfs: isLfs(file.name) || foreign.includes(file),
      isNeverGiven
    })
    const all = [...files.filter(({ name }) => !foreign.some((each) => each.name === name)), ...foreign]
    const sha = this.hub.commit({
      id: repo.names[0]!,
      ...(repo.names[1] !== undefined && { formerId: repo.names[1] }),
      files: all.map((file) => of(file, named.includes(file)))
    })
    const given = new Set(all.filter((file) => !named.includes(file)).map(({ tag }) => tag))
    if (repo.commits.at(-1)?.sha !== sha) repo.commits.push({ sha, files: all, given })
    this.#list(repo)
  }

  #list({ access, commits, listed }: Repo): void {
    if (access !== 'public') return
    for (const { files } of commits) for (const { sha256 } of files) listed.add(sha256)
  }

  setAccess(repo: Repo, access: Repo['access']): void {
    repo.access = access
    this.#list(repo)
    this.hub.setAccess(repo.names[0]!, { private: access === 'private', gated: access === 'gated' ? 'manual' : false })
  }

  /** To another owner, perhaps: what is asked for under the old name is answered under the new one. */
  rename(repo: Repo, random: Random): void {
    const to = `${pick(random, OWNERS)}/Model-${repo.number}-${repo.names.length}`
    this.hub.rename(repo.names[0]!, to)
    repo.names.unshift(to)
  }

  /** A folder with a model as its owner has it. */
  folderOf({ files, notes }: TaggedModel): string {
    const folder = join(this.folder, `own-${files[0]!.tag}`)
    mkdirSync(folder, { recursive: true })
    for (const { name, bytes } of [...files, notes]) writeFileSync(join(folder, name), bytes)
    return folder
  }

  /** A hub cache as `huggingface_hub` writes it, with one commit of a repository. */
  cacheOf(repo: Repo, at: number): string {
    const { sha, files } = repo.commits[at]!
    const root = join(this.folder, `cache-${repo.number}-${repo.names.length}-${at}`)
    const folder = join(root, `models--${repo.names[0]!.replace('/', '--')}`)
    const put = (path: string, bytes: string | Buffer): void => {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, bytes)
    }
    put(join(folder, 'refs/main'), sha)
    for (const { name, bytes, sha256 } of givenIn(repo, files)) {
      const blob = join(folder, 'blobs', isLfs(name) ? sha256 : gitSha1(bytes))
      put(blob, bytes)
      const link = join(folder, 'snapshots', sha, name)
      mkdirSync(dirname(link), { recursive: true })
      try {
        symlinkSync(relative(dirname(link), blob), link)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
    }
    return root
  }

  /** Lists weights of a commit as a torrent of BitTorrent v1, which somebody seeds. @returns its infohash, and the seed */
  list(repo: string, commit: string, weights: TaggedFile): { readonly infohash: string; readonly peer: string } {
    const { infohash, info } = torrentOf(weights)
    const webseed = encodeURIComponent(`${this.hub.endpoint}/${repo}/resolve/${commit}`)
    this.catalog.list([{ repo, magnet: `magnet:?xt=urn:btih:${infohash}&dn=${weights.name}&ws=${webseed}` }])
    if (!this.#seeded.has(infohash))
      this.#seed.join({
        infohash,
        info,
        trackers: [],
        peers: [],
        metadataTimeoutMs: 60_000,
        complete: true,
        open: async () => ({
          has: () => true,
          read: async (_file, offset, target) => void weights.bytes.copy(target, 0, offset),
          write: async () => undefined
        })
      })
    this.#seeded.add(infohash)
    return { infohash, peer: `127.0.0.1:${this.#seed.address.port}` }
  }

  async close(): Promise<void> {
    await Promise.all([this.hub, this.registry, this.bucket, this.catalog, this.#seed].map((each) => each.close()))
  }
}
