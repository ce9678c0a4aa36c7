import { existsSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Inventory, Job, ModelMember } from '@svc/client/protocol'
import { timestampOf } from '@svc/internal-clock'
import { parseDigest } from '@svc/ref'
import type { FakeHub, FakeRepo } from '@svc/testkit/fake-hub'
import { lfsPointer } from '@svc/testkit/fake-hub-content'
import type { FakeTreeEntry } from '@svc/testkit/fake-hub-faults'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import type { ArtifactState } from '../../../internal/state/src/artifacts.ts'
import {
  fakeHub,
  finished,
  importRepo,
  keepForAll,
  type Rig,
  rigOf,
  tempFolder,
  undoAfterTests,
  writeRepo
} from '../sources/hub/fixtures.ts'

undoAfterTests()

let fake: FakeHub
let rig: Rig
let count = 0
beforeAll(async () => {
  fake = await fakeHub({ tokens: ['hf_t'] })
  rig = await rigOf(fake, { token: 'hf_t' })
  keepForAll()
})
beforeEach(() => fake.setFaults(undefined))

/** Weights that no other test has, beside what every repository has. */
function freshRepo(more: Partial<FakeRepo> = {}): FakeRepo & { readonly ref: string } {
  const seed = 5000 + ++count * 10
  const id = `Org/Room${count}`
  const files = [
    { path: 'model-q8_0.gguf', content: { seed, sizeBytes: 200_003 } },
    { path: 'mmproj-f16.gguf', content: { seed: seed + 1, sizeBytes: 50_000 } },
    { path: 'tokenizer.json', content: Buffer.from('{"version":"1.0"}') },
    { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }
  ]
  return { id, files, ref: `svc:///${id.toLowerCase()}:q8_0`, ...more }
}

async function imported(more: Partial<FakeRepo> = {}): Promise<FakeRepo & { readonly ref: string }> {
  const repo = freshRepo(more)
  fake.commit(repo)
  expect(await importRepo(rig, repo.id)).toMatchObject({ state: 'done' })
  return repo
}

const evict = async (ref: string, force = false): Promise<Job> => finished(rig, await rig.client.evict({ ref, force }))
const ensure = async (ref: string): Promise<Job> => finished(rig, await rig.client.ensure({ ref }))

async function memberOf(ref: string): Promise<ModelMember> {
  const inventory: Inventory = await rig.client.models()
  const name = ref.slice('svc:///'.length, ref.lastIndexOf(':'))
  return inventory.namespaces.find((each) => `${each.ns}/${each.name}` === name)!.members[0]!
}

async function recordOf(ref: string): Promise<ArtifactState> {
  const { manifestDigest } = await rig.client.resolve(ref)
  return (await rig.daemon.context.artifacts.read(parseDigest(manifestDigest)))!
}

test('an evicted model keeps its name and documents, does not count as damaged, and returns from the hub with the same digests', async () => {
  const repo = await imported()
  const before = await rig.client.open(repo.ref)
  const { provenance } = await recordOf(repo.ref)
  expect(await evict(repo.ref)).toMatchObject({ state: 'done', result: { blobs: 2, bytes: 250_003 } })
  expect(await memberOf(repo.ref)).toMatchObject({ away: true, complete: false, missingBytes: 250_003 })
  expect((await rig.client.why(repo.ref)).copies).toMatchObject([{ kind: 'hub' }])
  const away = await rig.client.open(repo.ref)
  const weights = before.files.filter(({ kind = '' }) => kind.startsWith('weights.')).map(({ digest }) => digest)
  expect(away.missing).toEqual(weights)
  expect(away.files.length).toBe(before.files.length - 2)
  const verified = await finished(rig, await rig.client.verify({ target: 'all' }))
  expect(verified).toMatchObject({ state: 'done', verify: {} })
  expect(await finished(rig, await rig.client.verify({ target: repo.ref }))).toMatchObject({ state: 'done' })
  // a collection keeps everything else of it
  expect(await finished(rig, await rig.client.gc({ graceSeconds: 0 }))).toMatchObject({ result: { blobs: 0 } })

  expect(await ensure(repo.ref)).toMatchObject({
    state: 'done',
    bytesDone: before.files.reduce((sum, { kind, size }) => sum + (kind === undefined ? 0 : size), 0)
  })
  const { missing, files } = await rig.client.open(repo.ref)
  expect([missing, files]).toEqual([undefined, before.files])
  const member = await memberOf(repo.ref)
  expect([member.away, member.complete]).toEqual([undefined, true])
  expect((await recordOf(repo.ref)).provenance).toEqual(provenance)
  expect(await finished(rig, await rig.client.gc({ graceSeconds: 0 }))).toMatchObject({ result: { blobs: 0 } })
})

test('a model that a token fetched is withheld again after its return', async () => {
  const repo = await imported({ private: true })
  expect(await memberOf(repo.ref)).toMatchObject({ restricted: true, withheld: { fact: 'restricted' } })
  await evict(repo.ref)
  expect(await memberOf(repo.ref)).toMatchObject({ away: true, restricted: true, withheld: { fact: 'restricted' } })
  // everybody may have it by now: an import would say so, and this is none
  fake.setAccess(repo.id, { private: false })
  expect(await ensure(repo.ref)).toMatchObject({ state: 'done' })
  expect(await memberOf(repo.ref)).toMatchObject({ complete: true, restricted: true, withheld: { fact: 'restricted' } })
})

test('a model without another copy stays, unless its owner forces the eviction', async () => {
  const seed = 90_000
  const paths = [await writeRepo([{ path: 'own-q8_0.gguf', content: { seed, sizeBytes: 70_000 } }])]
  await finished(rig, await rig.client.importLocal({ paths, as: 'me/own' }))
  const ref = 'svc:///me/own:q8_0'
  expect(await evict(ref)).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  expect(await memberOf(ref)).toMatchObject({ complete: true })
  expect(await evict(ref, true)).toMatchObject({ state: 'done', result: { bytes: 70_000 } })
  expect(await ensure(ref)).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
  // the owner has it still
  await finished(rig, await rig.client.importLocal({ paths, as: 'me/own' }))
  const member = await memberOf(ref)
  expect([member.complete, member.away]).toEqual([true, undefined])
})

test('a hub that lists other bytes, refuses the files or lost the repository proves nothing', async () => {
  const repo = await imported({
    files: [
      { path: 'model-q8_0.gguf', content: { seed: 80_000, sizeBytes: 200_003 } },
      // small enough for git, which lists another kind of hash
      { path: 'mmproj-f16.gguf', content: { seed: 80_001, sizeBytes: 5_000 } }
    ]
  })
  const { manifestDigest } = await rig.client.resolve(repo.ref)
  expect((await recordOf(repo.ref)).copies).toBeUndefined()
  // the tree says that it is there, the file does not come
  fake.setFaults(({ stage, path }) =>
    stage !== 'tree' && path === 'model-q8_0.gguf' ? { kind: 'status', status: 404 } : undefined
  )
  expect(await evict(repo.ref)).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  // of the same size, and given to whoever asks
  const sha256 = 'f'.repeat(64)
  const another = (name: string) => (entries: FakeTreeEntry[]) =>
    entries.map((entry) => {
      if (entry.path !== name) return entry
      if (entry.lfs === undefined) return { ...entry, oid: sha256.slice(24) }
      const { oid, pointerSize } = lfsPointer(sha256, entry.size as number)
      return { ...entry, oid, lfs: { oid: sha256, size: entry.size, pointerSize } }
    })
  for (const name of ['model-q8_0.gguf', 'mmproj-f16.gguf']) {
    fake.setFaults(({ stage, path }) => {
      if (stage === 'tree') return { kind: 'tree', edit: another(name) }
      const isAnother = path === name && name === 'model-q8_0.gguf'
      return isAnother ? { kind: 'headers', headers: { 'x-linked-etag': `"${sha256}"` } } : undefined
    })
    expect(await evict(repo.ref)).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  }
  fake.setFaults(undefined)
  fake.setAccess(repo.id, { disabled: true })
  expect(await evict(repo.ref)).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  fake.setAccess(repo.id, { disabled: false })
  expect(existsSync(rig.daemon.context.store.blobPath(parseDigest(manifestDigest)))).toBe(true)
  expect(await memberOf(repo.ref)).toMatchObject({ complete: true })
})

test('a hub that gives other bytes after an eviction is refused, and names the file', async () => {
  const repo = await imported()
  await evict(repo.ref)
  fake.setFaults(({ stage, path }) =>
    stage === 'cdn' && path === 'model-q8_0.gguf' ? { kind: 'wrong-bytes', atByte: 100 } : undefined
  )
  const job = await ensure(repo.ref)
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  expect(job.error!.message).toContain('model-q8_0.gguf')
  expect(await memberOf(repo.ref)).toMatchObject({ away: true })
  expect((await recordOf(repo.ref)).copies).toBeUndefined()
  fake.setFaults(undefined)
  expect(await ensure(repo.ref)).toMatchObject({ state: 'done' })
})

test('pinned, viewed and open models are never evicted', async () => {
  const repo = await imported()
  const refused = async (): Promise<string> => (await evict(repo.ref, true)).error?.code ?? 'evicted'
  await rig.client.setPinned({ ref: repo.ref, pinned: true })
  expect(await refused()).toBe('E_KEPT')
  await rig.client.setPinned({ ref: repo.ref, pinned: false })

  const path = join(await tempFolder(), 'view')
  await rig.client.makeView({ ref: repo.ref, path })
  expect(await refused()).toBe('E_KEPT')
  await rig.client.removeView({ path })

  const held = await rig.client.makeView({ ref: repo.ref, holdSeconds: 60 })
  expect(await refused()).toBe('E_KEPT')
  expect(existsSync(held.files[0]!.path)).toBe(true)
})

test('eviction removes the view that svc path made, and a new one is made after the return', async () => {
  const repo = await imported()
  const view = await rig.client.makeView({ ref: repo.ref })
  expect(await evict(repo.ref)).toMatchObject({ state: 'done' })
  expect(existsSync(view.path)).toBe(false)
  await expect(rig.client.makeView({ ref: repo.ref })).rejects.toMatchObject({ code: 'E_NOT_FOUND' })
  await ensure(repo.ref)
  expect(existsSync((await rig.client.makeView({ ref: repo.ref })).files[0]!.path)).toBe(true)
})

test('bytes that another model needs stay; a reader keeps what it reads', async () => {
  const repo = await imported()
  fake.commit({ ...repo, id: `${repo.id}-Copy` })
  await importRepo(rig, `${repo.id}-Copy`)
  expect(await evict(repo.ref)).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  const member = await memberOf(repo.ref)
  expect([member.complete, member.away]).toEqual([true, undefined])

  const other = await imported()
  const { files } = await rig.client.open(other.ref)
  const reader = await rig.daemon.context.store.open(
    parseDigest(files.find(({ kind }) => kind === 'weights.gguf')!.digest)
  )
  expect(await evict(other.ref)).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  await reader.close()
  expect(await evict(other.ref)).toMatchObject({ state: 'done' })
})

test('another import of an evicted model makes it present again', async () => {
  const repo = await imported()
  await evict(repo.ref)
  expect(await importRepo(rig, repo.id)).toMatchObject({ state: 'done' })
  const member = await memberOf(repo.ref)
  expect([member.complete, member.away]).toEqual([true, undefined])
})

test('with proof_days = 0, only a proof from this moment counts', async () => {
  const own = await rigOf(fake, { store: { proof_days: 0 } })
  const repo = freshRepo()
  fake.commit(repo)
  await importRepo(own, repo.id)
  expect(await finished(own, await own.client.evict({ ref: repo.ref }))).toMatchObject({ state: 'done' })
})

test('an earlier source proves nothing', async () => {
  const repo = await imported()
  const { artifacts, clock } = rig.daemon.context
  const { manifestDigest, provenance, hints, source } = await recordOf(repo.ref)
  const where = `${source.repo}@${source.revision}`
  await artifacts.setCopy(manifestDigest, { kind: 'hub', where, at: timestampOf(clock) })
  // as an import of the same model from another repository: from there it would have to come back
  await artifacts.record({ manifestDigest, provenance, hints, source: { ...source, repo: 'Org/Elsewhere' } })
  expect(await evict(repo.ref)).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  expect(await memberOf(repo.ref)).toMatchObject({ complete: true })
  expect((await recordOf(repo.ref)).copies).toBeUndefined()
})

test('a model imported once more from an archive is evicted, and returns from the hub', async () => {
  const repo = await imported()
  const { artifacts } = rig.daemon.context
  const { manifestDigest, provenance, hints } = await recordOf(repo.ref)
  await artifacts.record({ manifestDigest, provenance, hints, source: { kind: 'oci' } })
  expect((await memberOf(repo.ref)).origin).toMatchObject({ kind: 'hf', repo: repo.id, revision: 'main' })
  expect(await evict(repo.ref)).toMatchObject({ state: 'done' })
  expect(await ensure(repo.ref)).toMatchObject({ state: 'done' })
})

test('a hub that is this daemon itself, by any route, does not count as a copy', async () => {
  let target = fake.endpoint
  const relay = createServer((asked, answer) => {
    const { host } = new URL(target)
    const onward = request(`${target}${asked.url}`, { method: asked.method!, headers: { ...asked.headers, host } })
    onward.on('response', (given) => {
      answer.writeHead(given.statusCode!, given.headers)
      given.pipe(answer)
    })
    onward.on('error', () => answer.destroy())
    onward.end()
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  const endpoint = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`
  const own = await rigOf({ ...fake, endpoint }, { mirror: true })
  try {
    const repo = freshRepo()
    fake.commit(repo)
    expect(await importRepo(own, repo.id)).toMatchObject({ state: 'done' })
    target = `http://${own.mirror}`
    const job = await finished(own, await own.client.evict({ ref: repo.ref }))
    expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
    expect((await own.client.open(repo.ref)).missing).toBeUndefined()
  } finally {
    relay.closeAllConnections()
    relay.close()
  }
})

test('a model pinned while its sources are asked stays', async () => {
  const repo = await imported()
  const { manifestDigest } = await rig.client.resolve(repo.ref)
  let pinning: Promise<unknown> | undefined
  fake.setFaults(({ stage }) => {
    if (stage !== 'tree') pinning ??= rig.daemon.context.artifacts.setKept(parseDigest(manifestDigest), true)
    return undefined
  })
  const job = await evict(repo.ref)
  expect(pinning).toBeDefined()
  await pinning
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  expect(await memberOf(repo.ref)).toMatchObject({ complete: true, pinned: true })
})

test('bytes that others fetched back are present, and are not evicted with them', async () => {
  const repo = await imported()
  await evict(repo.ref)
  const paths = [await writeRepo(repo.files)]
  const own = `me/${repo.id.slice(4).toLowerCase()}`
  const bring = async (): Promise<Job> => finished(rig, await rig.client.importLocal({ paths, as: own }))
  expect(await bring()).toMatchObject({ state: 'done' })
  expect(await memberOf(repo.ref)).toMatchObject({ complete: true })
  // nobody could have it again from there
  fake.setAccess(repo.id, { disabled: true })
  expect(await evict(`svc:///${own}:q8_0`, true)).toMatchObject({ state: 'failed', error: { code: 'E_KEPT' } })
  await rig.client.removeModel({ ns: 'me', name: own.slice(3) })
  await finished(rig, await rig.client.gc({ graceSeconds: 0 }))
  expect(await memberOf(repo.ref)).toMatchObject({ complete: true })
  expect((await rig.client.open(repo.ref)).missing).toBeUndefined()
})
