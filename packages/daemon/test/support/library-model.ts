import { chmodSync, closeSync, openSync, readSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Job } from '@svc/client/protocol'
import { expect } from 'vitest'
import { startDaemon } from '../../src/index.ts'
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
  readonly #random: Random
  readonly #folder: string
  #daemon: TestDaemon

  constructor(daemon: TestDaemon, random: Random) {
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
      this.list
    ]
    const step = pick(this.#random, steps)
    await step.call(this)
    return step.name
  }

  #contentKey(quant: string, content: number): string {
    return `${quant} ${content}`
  }

  #source(quant: string, content: number): string {
    const folder = join(this.#folder, `source-${quant}-${content}`)
    return writeFiles(folder, {
      [`m-${quant}.gguf`]: gguf(2_000 + content, content),
      'config.json': '{"model_type":"llama"}'
    })
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
    const wanted = Array.from(
      { length: 2 + this.#random(4) },
      () => [pick(this.#random, QUANTS), this.#random(CONTENTS)] as const
    )
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
      if (this.#weights.has(job.manifest!)) this.#healed(job.manifest!)
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
    if (members === undefined) return expect(code).toBe('E_UNKNOWN_REF')
    const matching = members.has(selector)
      ? [selector]
      : [...members.keys()].filter((each) => each.startsWith(selector))
    if (code === 'E_PARSE') return // a prefix such as `iq` is no quant by its grammar
    if (matching.length === 0) return expect(code).toBe('E_NO_MEMBER')
    if (matching.length > 1)
      return expect([code, body.error.candidates]).toEqual(['E_AMBIGUOUS_SELECTOR', matching.sort()])
    expect([status, body.manifestDigest]).toEqual([200, members.get(matching[0]!)])
  }

  async #changeTag(index: 'current' | null): Promise<void> {
    const repo = pick(this.#random, REPOS)
    const tag = pick(this.#random, TAGS)
    const [ns, name] = repo.split('/')
    const { status, body } = await this.#daemon.post('/svcd/tag', { root: this.#daemon.root, ns, name, tag, index })
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

  #inUse(): Set<string> {
    const members = [...this.#repos.values(), ...[...this.#tags.values()].map((each) => each.members)]
    return new Set(members.flatMap((each) => [...each.values()]).map((manifest) => this.#weights.get(manifest)!))
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
    const hex = digest.slice(7)
    const path = join(this.#daemon.root, 'blobs/sha256', hex.slice(0, 2), hex.slice(2))
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
    const next = await startDaemon({ root, socketPath, fileConfig: { swarm: { enabled: false } }, networks: {} })
    this.#daemon = Object.assign(new ApiClient(next.socketPath), { folder, root, running: next })
  }
}
