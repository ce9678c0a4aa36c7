import { join } from 'node:path'
import type { Inventory, Job, ShareResult } from '@svc/client/protocol'
import type { FakeHub } from '@svc/testkit/fake-hub'
import { expect } from 'vitest'
import { type Node, pinned } from '../swarm/nodes.ts'
import type { ApiClient } from './daemon.ts'
import { gguf, safetensors, writeFiles } from './models.ts'

/** Who works at once. */
export const WORKERS = 4

/** Models that another daemon gives away: some are published ahead, so that whoever asks does not wait. */
export class Shares {
  readonly #seeder: Node
  readonly #ahead: Promise<ShareResult>[] = []
  #serial = 0

  constructor(seeder: Node, ahead: number) {
    this.#seeder = seeder
    for (let n = 0; n < ahead; n += 1) this.#publish()
  }

  next(): Promise<ShareResult> {
    this.#publish()
    return this.#ahead.shift()!
  }

  /** Resolves when nothing is being published any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#ahead)
  }

  #publish(): void {
    const n = (this.#serial += 1)
    this.#ahead.push(this.#seeder.publish({ 'm-q8_0.gguf': gguf(sizeOf(n), 500_000 + n) }, `far/m${n}`))
  }
}

/** What a daemon has acknowledged. */
export interface Promised {
  /** A repository and the manifest that its import ended with, `ns/name:tag` and an index, or a manifest that another daemon gave. */
  readonly kind: 'import' | 'tag' | 'fill' | 'eviction'
  readonly name: string
  readonly digest: string
  /** When; see {@link PowerWork.now}. */
  readonly at: number
}

export interface PowerWork {
  readonly client: ApiClient
  readonly hub: FakeHub
  readonly shares: Shares
  /** Where models lie that are imported from disk. */
  readonly sources: string
  readonly promised: Promised[]
  /** The position of the disk's log, which every acknowledgement is marked with. */
  readonly now: () => number
  /** No new work once this is true. */
  readonly isOver?: () => boolean
}

const sizeOf = (n: number): number => 40_000 + ((n * 7919) % 300_000)

/** Imports, fills and changes tags until the daemon is gone, in one of {@link WORKERS} lines; `first` numbers the models. */
export async function work(power: PowerWork, worker: number, first: number): Promise<void> {
  const { client, hub, shares, sources, promised, now, isOver = () => false } = power
  const promise = (kind: Promised['kind'], name: string, digest: string): void => {
    promised.push({ kind, name, digest, at: now() })
  }
  const job = async (path: string, body: unknown): Promise<Job> => {
    const accepted = await client.post(path, body)
    if (accepted.status !== 201) throw new Error(JSON.stringify(accepted.body))
    return client.finished(accepted.body)
  }
  /** What was brought in a while ago: no running job counts on it. From now on it is here, or away. */
  const evictEarlier = async (than: string): Promise<void> => {
    const at = promised.findIndex(({ kind, name }) => kind === 'import' && name.startsWith('org/') && name !== than)
    if (at < 0) return
    const { name } = (promised[at] = { ...promised[at]!, kind: 'eviction' })
    await job('/v1/evict', { ref: `svc:///${name}:q8_0` })
  }
  try {
    for (let n = first + worker; !isOver(); n += WORKERS) {
      if (worker === 3) {
        const share = await shares.next()
        const { state } = await job('/v1/import/bt', pinned(share))
        if (state === 'done') promise('fill', share.ref, share.manifestDigest)
        continue
      }
      if (worker === 2 && Math.floor(n / WORKERS) % 2 === 0) {
        const id = `Org/m${n}`
        hub.commit({ id, files: [{ path: `m-q8_0.gguf`, content: gguf(sizeOf(n), n) }] })
        const { state, manifest } = await job('/v1/import/hf', { repo: id })
        if (state !== 'done') continue
        const name = id.toLowerCase()
        promise('import', name, manifest!)
        await evictEarlier(name)
        continue
      }
      const as = `w${worker}/m${n}`
      const folder = writeFiles(join(sources, `m${n}`), {
        'm-q8_0.gguf': gguf(sizeOf(n), n),
        'model.safetensors': safetensors(10_000 + (n % 97), n),
        'config.json': '{"model_type":"llama"}',
        ...smallFiles(n)
      })
      const { state, manifest } = await job('/v1/import/local', { paths: [folder], as })
      if (state !== 'done') continue
      promise('import', as, manifest!)
      const tagged = await client.call('PUT', `/v1/tags/${as}/kept`, { body: {} })
      if (tagged.status === 200) promise('tag', `${as}:kept`, tagged.body.digest as string)
    }
  } catch (error) {
    // the power is gone, and the daemon with it.
    if (power.isOver !== undefined && !isOver()) throw error
  }
}

/** Files that come in together, beside each third model: one batch of syncs is for all of them. */
function smallFiles(n: number): Record<string, string> {
  const count = n % 3 === 0 ? 30 : 0
  return Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`modeling_part${i}.py`, `# ${n} ${i}\n`.repeat(20 * i + 1)])
  )
}

/** Everything verifies, and all that was promised is there, whole. */
export async function checkAll(client: ApiClient, promised: readonly Promised[]): Promise<void> {
  const verified = await client.verify('all')
  expect(verified.verify).toEqual({})
  expect(verified.state).toBe('done')
  const { body } = await client.get('/v1/models')
  const { namespaces, tags } = body as {
    namespaces: Pick<Inventory['namespaces'][number], 'ns' | 'name' | 'quants' | 'members'>[]
    tags: { repo: string; tag: string; digest: string; blobPresent: boolean }[]
  }
  const quants = new Map(namespaces.map((each) => [`${each.ns}/${each.name}`, each.quants]))
  const present = new Map(tags.map((each) => [`${each.repo}:${each.tag}`, each]))
  for (const { kind, name, digest } of promised) {
    if (kind === 'tag') {
      expect([name, present.get(name)?.digest, present.get(name)?.blobPresent]).toEqual([name, digest, true])
    } else if (kind === 'eviction') {
      // unlinked bytes may be there again
      const { members = [] } = namespaces.find((each) => `${each.ns}/${each.name}` === name) ?? {}
      const isKnown = members.some(({ manifest, complete, away }) => manifest === digest && (complete || away === true))
      expect([name, isKnown]).toEqual([name, true])
    } else if (kind === 'fill') {
      const { status, body: opened } = await client.open(`svc:///some/model@${digest}`)
      expect([name, status, opened.missing]).toEqual([name, 200, undefined])
    } else {
      const manifests: string[] = []
      for (const quant of quants.get(name) ?? []) {
        const opened = (await client.open(`svc:///${name}:${quant}`)).body
        expect([name, opened.missing]).toEqual([name, undefined])
        manifests.push(opened.manifestDigest as string)
      }
      expect([name, manifests]).toEqual([name, expect.arrayContaining([digest])])
    }
  }
}
