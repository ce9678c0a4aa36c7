// One file, as every step reads and changes the same model of what a library holds.

import { createHash } from 'node:crypto'
import { chmodSync, closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Job, ShareResult } from '@svc/client/protocol'
import { expect } from 'vitest'
import type { InspectedOptions } from '../../src/app/daemon.ts'
import { startInspected } from '../../src/app/daemon.ts'
import { pinned } from '../swarm/nodes.ts'
import { ApiClient, type TestDaemon } from './daemon.ts'
import { gguf, writeFiles } from './models.ts'

const QUANTS = ['q4_0', 'q4_k_m', 'q8_0', 'iq2_xs'] as const
const REPOS = ['a/b', 'a/c', 'z/b'] as const
const TAGS = ['v1', 'V1', 'old'] as const
/** Few, so that the same bytes come in under many names. */
const CONTENTS = 5

export type Random = (below: number) => number

/** Repeatable numbers below a bound. */
export function seededRandom(seed: number): Random {
  let state = (seed * 2654435761 + 12345) >>> 0
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const pick = <T>(random: Random, from: readonly T[]): T => from[random(from.length)]!

type Members = ReadonlyMap<string, string>

/** What the model knows of beside its daemon. */
export interface ModelOptions {
  /** With which the daemon was started, for restarts. */
  readonly daemonOptions?: Partial<InspectedOptions>
  /** Models that another daemon gives away; without any there are no fills. */
  readonly shares?: readonly ShareResult[]
  /** Imports beside a collection are up to this many. */
  readonly maxAtOnce?: number
}

const weightsOf = (content: number): Buffer => gguf(2_000 + content, content)

export const modelFiles = (quant: string, content: number): Readonly<Record<string, string | Buffer>> => ({
  [`m-${quant}.gguf`]: weightsOf(content),
  'config.json': '{"model_type":"llama"}'
})

/**
 * What a library should hold, kept beside a daemon that is driven through its API alone. One method a step; each compares what
 * the daemon answers with what the model expects.
 */
export class LibraryModel {
  readonly #repos = new Map<string, Members>()
  /** `repo:tag` to the members at that time. */
  readonly #tags = new Map<string, { readonly digest: string; readonly members: Members }>()
  /** Content and quant to manifest: the same bytes give the same manifest under any name. */
  readonly #manifests = new Map<string, string>()
  /** Manifest to the digest of its weights. */
  readonly #weights = new Map<string, string>()
  /** Blobs whose bytes on disk were changed, and nobody has noticed. */
  readonly #corrupt = new Set<string>()
  /** Blobs that were found corrupt, and moved aside. */
  readonly #missing = new Set<string>()
  /** Pinned imports that have no name. */
  readonly #pins = new Set<string>()
  /** Path to manifest. */
  readonly #views = new Map<string, string>()
  readonly #private = new Set<string>()
  readonly #options: ModelOptions
  readonly #random: Random
  readonly #folder: string
  #daemon: TestDaemon

  constructor(daemon: TestDaemon, random: Random, options: ModelOptions = {}) {
    this.#options = options
    this.#daemon = daemon
    this.#folder = daemon.folder
    this.#random = random
  }

  get daemon(): TestDaemon {
    return this.#daemon
  }

  /** One random step, and its name for messages. */
  async step(): Promise<string> {
    const steps = [
      this.importOne,
      this.importOne,
      this.importOne,
      this.importAtOnce,
      this.resolve,
      this.resolve,
      this.resolve,
      this.tag,
      this.untag,
      this.verify,
      this.corruptOne,
      this.ensure,
      this.ensure,
      this.restart,
      this.list,
      this.remove,
      this.collect,
      this.collectBesideWork,
      this.view,
      this.removeView,
      this.makePrivate,
      ...(this.#options.shares === undefined ? [] : [this.fill, this.fill, this.unpin])
    ]
    const step = pick(this.#random, steps)
    await step.call(this)
    return step.name
  }

  #contentKey(quant: string, content: number): string {
    return `${quant} ${content}`
  }

  #source(quant: string, content: number): string {
    return writeFiles(join(this.#folder, `source-${quant}-${content}`), modelFiles(quant, content))
  }

  async #learn(key: string, manifest: string, repo: string, quant: string): Promise<void> {
    const known = this.#manifests.get(key)
    if (known !== undefined) return expect([key, manifest]).toEqual([key, known])
    this.#manifests.set(key, manifest)
    const { body } = await this.#daemon.open(`svc:///${repo}:${quant}`)
    const weights = (body.files as { kind?: string; digest: string }[]).find(({ kind }) => kind === 'weights.gguf')
    this.#weights.set(manifest, weights!.digest)
  }

  #healed(manifest: string): void {
    const weights = this.#weights.get(manifest)!
    this.#corrupt.delete(weights)
    this.#missing.delete(weights)
  }

  #set(repo: string, quant: string, manifest: string): void {
    this.#repos.set(repo, new Map([...(this.#repos.get(repo) ?? []), [quant, manifest]]))
  }

  async importOne(): Promise<void> {
    const [repo, quant, content] = [pick(this.#random, REPOS), pick(this.#random, QUANTS), this.#random(CONTENTS)]
    const job = await this.#daemon.import([this.#source(quant, content)], repo)
    expect(job.state).toBe('done')
    await this.#learn(this.#contentKey(quant, content), job.manifest!, repo, quant)
    this.#healed(job.manifest!)
    this.#set(repo, quant, job.manifest!)
  }

  /** Merges at the same time must equal some order of theirs. */
  async importAtOnce(): Promise<void> {
    const repo = pick(this.#random, REPOS)
    await this.#importMany(repo, 2 + this.#random(4))
  }

  async #importMany(repo: string, count: number): Promise<void> {
    const wanted = Array.from({ length: count }, () => [pick(this.#random, QUANTS), this.#random(CONTENTS)] as const)
    const jobs = await Promise.all(
      wanted.map(([quant, content]) => this.#daemon.import([this.#source(quant, content)], repo))
    )
    expect(jobs.map(({ state }) => state)).toEqual(jobs.map(() => 'done'))
    const possible = new Map<string, Set<string>>()
    jobs.forEach((job, at) => {
      const quant = wanted[at]![0]
      possible.set(quant, (possible.get(quant) ?? new Set()).add(job.manifest!))
    })
    for (const [quant, manifests] of possible) {
      const { manifestDigest } = (await this.#daemon.resolve(`svc:///${repo}:${quant}`)).body
      expect([...manifests]).toContain(manifestDigest)
      this.#set(repo, quant, manifestDigest as string)
    }
    for (const [at, job] of jobs.entries()) {
      const [quant, content] = wanted[at]!
      const key = this.#contentKey(quant, content)
      if (this.#repos.get(repo)!.get(quant) === job.manifest) await this.#learn(key, job.manifest!, repo, quant)
      // also where another one took its place under that name
      const digest = `sha256:${createHash('sha256').update(weightsOf(content)).digest('hex')}`
      this.#corrupt.delete(digest)
      this.#missing.delete(digest)
    }
    await this.#expectMembers(repo)
  }

  async #expectMembers(repo: string): Promise<void> {
    for (const [quant, manifest] of this.#repos.get(repo) ?? []) {
      const { status, body } = await this.#daemon.resolve(`svc:///${repo}:${quant}`)
      expect([repo, quant, status, body.manifestDigest]).toEqual([repo, quant, 200, manifest])
    }
  }

  /** A quant, a prefix of one, perhaps behind a tag: what the rules of selection say. */
  async resolve(): Promise<void> {
    const repo = pick(this.#random, REPOS)
    const quant = pick(this.#random, QUANTS)
    const selector = this.#random(2) === 0 ? quant : quant.slice(0, 2 + this.#random(quant.length - 2))
    const tag = this.#random(4) === 0 ? pick(this.#random, TAGS) : undefined
    const { status, body } = await this.#daemon.resolve(
      `svc:///${repo}:${tag === undefined ? '' : `${tag}+`}${selector}`
    )
    const code = status === 200 ? undefined : (body.error.code as string)
    const members = tag === undefined ? this.#repos.get(repo) : this.#tags.get(`${repo}:${tag}`)?.members
    if (code === 'E_PARSE') return expect(selector).toBe('iq') // a prefix that is not a quant by its grammar
    if (members === undefined) return expect(code).toBe('E_UNKNOWN_REF')
    const matching = members.has(selector)
      ? [selector]
      : [...members.keys()].filter((each) => each.startsWith(selector))
    if (matching.length === 0) return expect(code).toBe('E_NO_MEMBER')
    if (matching.length > 1)
      return expect([code, body.error.candidates]).toEqual(['E_AMBIGUOUS_SELECTOR', matching.sort()])
    expect([status, body.manifestDigest]).toEqual([200, members.get(matching[0]!)])
  }

  async #changeTag(index: 'current' | null): Promise<void> {
    const repo = pick(this.#random, REPOS)
    const tag = pick(this.#random, TAGS)
    const method = index === null ? 'DELETE' : 'PUT'
    const { status, body } = await this.#daemon.call(method, `/v1/tags/${repo}/${tag}`, {
      ...(index !== null && { body: {} })
    })
    const key = `${repo}:${tag}`
    const members = this.#repos.get(repo)
    if (index === null) {
      expect([key, status]).toEqual([key, this.#tags.has(key) ? 200 : 404])
      this.#tags.delete(key)
    } else {
      expect([key, status]).toEqual([key, members === undefined ? 404 : 200])
      if (members !== undefined) this.#tags.set(key, { digest: body.digest as string, members })
    }
  }

  tag(): Promise<void> {
    return this.#changeTag('current')
  }

  untag(): Promise<void> {
    return this.#changeTag(null)
  }

  #needed(): Set<string> {
    const members = [...this.#repos.values(), ...[...this.#tags.values()].map((each) => each.members)]
    return new Set([...members.flatMap((each) => [...each.values()]), ...this.#pins, ...this.#views.values()])
  }

  #inUse(): Set<string> {
    return new Set([...this.#needed()].map((manifest) => this.#weights.get(manifest)!))
  }

  #blobPath(digest: string): string {
    const hex = digest.slice(7)
    return join(this.#daemon.root, 'blobs/sha256', hex.slice(0, 2), hex.slice(2))
  }

  /** A quant, or all of a repository; tags at what goes are removed and named, older ones protect what they need. */
  async remove(): Promise<void> {
    const repo = pick(this.#random, REPOS)
    const quant = this.#random(3) === 0 ? undefined : pick(this.#random, QUANTS)
    const before = this.#repos.get(repo)
    const { status, body } = await this.#daemon.call(
      'DELETE',
      `/v1/models/${repo}${quant === undefined ? '' : `/${quant}`}`
    )
    const hasTags = [...this.#tags.keys()].some((key) => key.startsWith(`${repo}:`))
    const isThere = quant === undefined ? before !== undefined || hasTags : before?.has(quant) === true
    expect([repo, quant, status]).toEqual([repo, quant, isThere ? 200 : 404])
    if (!isThere) return
    for (const tag of body.tags as string[]) {
      expect([tag, this.#tags.get(`${repo}:${tag}`)?.members]).toEqual([tag, before])
      this.#tags.delete(`${repo}:${tag}`)
    }
    const rest = new Map([...(before ?? [])].filter(([each]) => quant !== undefined && each !== quant))
    if (rest.size === 0) this.#repos.delete(repo)
    else this.#repos.set(repo, rest)
    const needed = this.#needed()
    for (const each of body.quants as { manifest: string; needed: boolean }[])
      expect([each.manifest, each.needed]).toEqual([each.manifest, needed.has(each.manifest)])
  }

  async #collection(): Promise<void> {
    const { body, status } = await this.#daemon.post('/v1/gc', { graceSeconds: 0 })
    expect(status).toBe(201)
    const job = await this.#daemon.finished(body)
    expect([job.state, job.error]).toEqual(['done', undefined])
  }

  /** What is needed and was there is there; with `exactly`, nothing else is. */
  async #expectKept(exactly: boolean): Promise<void> {
    const inUse = this.#inUse()
    for (const digest of this.#weights.values()) {
      const isExpected = inUse.has(digest) && !this.#missing.has(digest)
      if (isExpected || exactly) expect([digest, existsSync(this.#blobPath(digest))]).toEqual([digest, isExpected])
    }
    for (const manifest of this.#needed()) {
      const { status, body } = await this.#daemon.open(`svc:///some/model@${manifest}`)
      const missing = this.#missing.has(this.#weights.get(manifest)!) ? [this.#weights.get(manifest)!] : undefined
      expect([manifest, status, body.missing]).toEqual([manifest, 200, missing])
    }
    for (const [path, manifest] of this.#views) {
      const weights = this.#weights.get(manifest)!
      if (this.#missing.has(weights)) continue
      const file = readdirSync(path).find((name) => name.endsWith('.gguf'))!
      expect([path, readFileSync(join(path, file)).length]).toEqual([
        path,
        readFileSync(this.#blobPath(weights)).length
      ])
    }
  }

  async collect(): Promise<void> {
    await this.#collection()
    const needed = this.#needed()
    const inUse = this.#inUse()
    for (const digest of this.#corrupt) if (!inUse.has(digest)) this.#corrupt.delete(digest)
    for (const manifest of this.#private) if (!needed.has(manifest)) this.#private.delete(manifest)
    await this.#expectKept(true)
  }

  /** Collections beside imports, reads and fills remove nothing that any of them needs. */
  async collectBesideWork(): Promise<void> {
    const readable = [...this.#needed()].filter((manifest) => {
      const weights = this.#weights.get(manifest)!
      return !this.#missing.has(weights) && !this.#corrupt.has(weights)
    })
    const read = async (): Promise<void> => {
      if (readable.length === 0) return
      const manifest = pick(this.#random, readable)
      const { status, bytes } = await this.#daemon.get(`/v1/blob/${this.#weights.get(manifest)!}`)
      expect([manifest, status, bytes.length > 2_000]).toEqual([manifest, 200, true])
    }
    const wasCorrupt = new Set(this.#corrupt)
    await Promise.all([
      this.#importMany(pick(this.#random, REPOS), 1 + this.#random(this.#options.maxAtOnce ?? 4)),
      this.#collection(),
      read(),
      this.#collection(),
      read(),
      ...(this.#options.shares === undefined ? [] : [this.fill()])
    ])
    // of what nothing needs a part may be gone by now, with what was known of it
    const inUse = this.#inUse()
    for (const digest of wasCorrupt) if (!inUse.has(digest)) this.#corrupt.delete(digest)
    await this.collect()
  }

  async #learnPinned(manifest: string): Promise<void> {
    const { status, body } = await this.#daemon.open(`svc:///some/model@${manifest}`)
    expect(status).toBe(200)
    const weights = (body.files as { kind?: string; digest: string }[]).find(({ kind }) => kind === 'weights.gguf')
    this.#weights.set(manifest, weights!.digest)
  }

  /** A pinned import from another daemon. */
  async fill(): Promise<void> {
    const share = pick(this.#random, this.#options.shares!)
    const { status, body } = await this.#daemon.post('/v1/import/bt', pinned(share))
    expect([status, body]).toEqual([201, body])
    const job = await this.#daemon.finished(body)
    expect([job.state, job.error]).toEqual(['done', undefined])
    const manifest = share.manifestDigest
    this.#pins.add(manifest)
    await this.#learnPinned(manifest)
    this.#missing.delete(this.#weights.get(manifest)!)
  }

  async unpin(): Promise<void> {
    const manifest = pick(this.#random, this.#options.shares!).manifestDigest
    const { status } = await this.#daemon.call('DELETE', `/v1/pins/${manifest}`)
    expect([manifest, status]).toEqual([manifest, this.#pins.delete(manifest) ? 200 : 404])
  }

  /** A managed view, or one at one of two places, where it takes the place of what was there. */
  async view(): Promise<void> {
    const repo = pick(this.#random, REPOS)
    const quant = pick(this.#random, QUANTS)
    const manifest = this.#repos.get(repo)?.get(quant)
    const place = [undefined, 'place1', 'place2'][this.#random(3)]
    const path = place === undefined ? undefined : join(this.#folder, place)
    const { status, body } = await this.#daemon.post('/v1/views', {
      ref: `svc:///${repo}:${quant}`,
      ...(path !== undefined && { path })
    })
    if (manifest === undefined) return expect([400, 404]).toContain(status)
    const isMissing = this.#missing.has(this.#weights.get(manifest)!)
    expect([repo, quant, status, body]).toEqual([repo, quant, isMissing ? 404 : 200, body])
    if (!isMissing) this.#views.set(body.path as string, manifest)
  }

  async removeView(): Promise<void> {
    const [path] = this.#views.keys()
    if (path === undefined) return
    const { status } = await this.#daemon.call('DELETE', '/v1/views', { body: { path } })
    expect(status).toBe(200)
    this.#views.delete(path)
  }

  async makePrivate(): Promise<void> {
    const repo = pick(this.#random, REPOS)
    const [quant, manifest] = [...(this.#repos.get(repo) ?? [])][0] ?? []
    if (manifest === undefined) return
    const isPrivate = this.#random(2) === 0
    const ref = `svc:///${repo}:${quant}`
    const { status } = await this.#daemon.call('PUT', '/v1/private', { body: { ref, private: isPrivate } })
    expect(status).toBe(200)
    if (isPrivate) this.#private.add(manifest)
    else this.#private.delete(manifest)
  }

  async verify(): Promise<void> {
    const job: Job = await this.#daemon.verify('all')
    const used = this.#inUse()
    const mismatched = [...this.#corrupt].sort()
    const missing = [...this.#missing].filter((digest) => used.has(digest)).sort()
    if (mismatched.length === 0 && missing.length === 0) {
      expect([job.state, job.verify]).toEqual(['done', {}])
    } else {
      expect([job.state, job.error?.code]).toEqual(['failed', 'E_VERIFY_FAILED'])
      expect([...job.verify!.mismatched!].sort()).toEqual(mismatched)
      for (const digest of missing) expect(job.verify!.missing).toContain(digest)
    }
    for (const digest of mismatched) this.#missing.add(digest)
    this.#corrupt.clear()
  }

  async corruptOne(): Promise<void> {
    const weights = [...this.#inUse()].filter((digest) => !this.#missing.has(digest) && !this.#corrupt.has(digest))
    if (weights.length === 0) return
    const digest = pick(this.#random, weights.sort())
    const path = this.#blobPath(digest)
    chmodSync(path, 0o644)
    const file = openSync(path, 'r+')
    const byte = Buffer.alloc(1)
    readSync(file, byte, 0, 1, 100)
    writeSync(file, Buffer.from([byte[0]! ^ 0xff]), 0, 1, 100)
    closeSync(file)
    chmodSync(path, 0o444)
    this.#corrupt.add(digest)
  }

  async ensure(): Promise<void> {
    const repo = pick(this.#random, REPOS)
    const quant = pick(this.#random, QUANTS)
    const manifest = this.#repos.get(repo)?.get(quant)
    const { body } = await this.#daemon.post('/v1/ensure', { ref: `svc:///${repo}:${quant}` })
    const job = await this.#daemon.finished(body)
    if (manifest === undefined) {
      return expect(['E_UNKNOWN_REF', 'E_NO_MEMBER']).toContain(job.error?.code)
    }
    const isMissing = this.#missing.has(this.#weights.get(manifest)!)
    expect([repo, quant, job.state, job.error?.code]).toEqual(
      isMissing ? [repo, quant, 'failed', 'E_SOURCE_UNAVAILABLE'] : [repo, quant, 'done', undefined]
    )
  }

  async list(): Promise<void> {
    const { body } = await this.#daemon.get('/v1/models')
    for (const { members } of body.namespaces as { members: { manifest: string; private: boolean }[] }[])
      for (const member of members)
        expect([member.manifest, member.private]).toEqual([member.manifest, this.#private.has(member.manifest)])
    const views = ((await this.#daemon.get('/v1/views')).body.views as { path: string; manifestDigest: string }[]).map(
      ({ path, manifestDigest }) => [path, manifestDigest] as const
    )
    expect(new Map(views)).toEqual(this.#views)
    const shown = (body.namespaces as { ns: string; name: string; quants: string[] }[]).map(
      ({ ns, name, quants }) => [`${ns}/${name}`, [...quants].sort()] as const
    )
    const expected = [...this.#repos].map(([repo, members]) => [repo, [...members.keys()].sort()] as const)
    expect(new Map(shown)).toEqual(new Map(expected))
    const tags = (body.tags as { repo: string; tag: string; digest: string }[]).map(
      (each) => `${each.repo}:${each.tag} ${each.digest}`
    )
    expect(tags.sort()).toEqual([...this.#tags].map(([key, { digest }]) => `${key} ${digest}`).sort())
  }

  async restart(): Promise<void> {
    const { folder, root, socketPath, running, agent } = this.#daemon
    agent.destroy()
    await running.close({ quick: true })
    const next = await startInspected({
      root,
      socketPath,
      fileConfig: { swarm: { enabled: false } },
      networks: {},
      ...this.#options.daemonOptions
    })
    this.#daemon = Object.assign(new ApiClient(next.socketPath), { folder, root, running: next })
  }
}
