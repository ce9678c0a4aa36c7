// A collection beside documents that a newer version wrote, or that are damaged: whatever they name stays.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { canonicalBytes } from '@svc/manifest'
import { sha256 } from '@svc/metainfo'
import { digestFromBytes, type Sha256Digest } from '@svc/ref'
import { describe, expect, test } from 'vitest'
import { commitArtifacts } from '../../../library/src/import/commit.ts'
import { writeDocument } from '../../../library/src/import/seal.ts'
import { blobFile, spoil } from '../api/members.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'
import { gguf, writeFiles } from '../support/models.ts'

const KINDS = ['index', 'manifest', 'record', 'companions'] as const
type Kind = (typeof KINDS)[number]

/** What a document becomes in the hands of a newer version: it names blobs under keys of its own. */
function newer(document: object): object {
  const before = document as { readonly schemaVersion?: number }
  return before.schemaVersion === undefined
    ? { ...document, schema: 'svc.companions.v2' }
    : { ...document, schemaVersion: before.schemaVersion + 1 }
}

/** The model `me/m`, which differs from an imported one in its name and annotations, and in one document. */
async function modelWith(change: Partial<Record<Kind, (document: object) => object>>) {
  const api = await testDaemon()
  const files = { 'm-q8_0.gguf': gguf(2_200_000), 'generation_config.json': '{"top_k":7}' }
  expect((await api.import([writeFiles(temporaryFolder(), files)], 'me/first')).error).toBeUndefined()
  const { store, documents, artifacts, repos } = api.running.context
  const { body } = await api.resolve('svc:///me/first:q8_0')
  const index = await documents.index(body.indexDigest)
  const [member] = index.members
  const manifest = (await documents.manifest(member!.manifest))!
  const state = (await artifacts.read(member!.manifest))!
  const put = async (kind: Kind, document: object): Promise<Sha256Digest> => {
    const bytes = canonicalBytes(change[kind]?.(document) ?? document)
    const digest = digestFromBytes(sha256(bytes))
    await writeDocument(store, { document, bytes, digest })
    return digest
  }
  const record = JSON.parse(readFileSync(blobFile(api, member!.distribution), 'utf8'))
  const companions = (await documents.companions(state.source.companions!))!
  const document = { ...manifest, annotations: { ...manifest.annotations, 'svc.license': 'MIT' } }
  const digests = {
    manifest: await put('manifest', document),
    record: await put('record', { ...record, more: 1 }),
    companions: await put('companions', { ...companions, more: 1 })
  }
  const own = { ...member!, manifest: digests.manifest, distribution: digests.record }
  const sealed = { document, bytes: canonicalBytes(document), digest: digests.manifest }
  const source = { follows: undefined, origin: { kind: 'local' as const }, companions: digests.companions }
  const provenanceOf = () => ({ access: 'own' as const })
  await commitArtifacts(
    { ns: 'me', name: 'm' },
    [{ member: own, manifest: sealed }],
    { ...source, provenanceOf },
    api.running.context
  )
  const named = await put('index', { ...index, members: [own] })
  await repos.update({ ns: 'me', name: 'm' }, async (current) => ({ ...current!, index: named }))
  expect((await api.call('DELETE', '/v1/models/me/first')).status).toBe(200)
  return { api, digests: { ...digests, index: named } }
}

const blobs = (api: TestDaemon): string[] =>
  readdirSync(join(api.root, 'blobs/sha256'), { recursive: true }).map(String).sort()
const collect = async (api: TestDaemon) => api.finished((await api.post('/v1/gc', { graceSeconds: 0 })).body)

async function keepsAll(api: TestDaemon, digest: Sha256Digest) {
  const before = blobs(api)
  const job = await collect(api)
  expect([job.state, job.error?.message]).toEqual(['failed', expect.stringContaining(digest)])
  expect(blobs(api)).toEqual(before)
}

describe.each(KINDS)('%s', (kind) => {
  test('of a newer format: nothing is collected, and the job names it', async () => {
    const { api, digests } = await modelWith({ [kind]: newer })
    await keepsAll(api, digests[kind])
  })

  test.each([
    ['truncated', (bytes: Buffer) => bytes.subarray(0, bytes.length >> 1)],
    ['no JSON', (bytes: Buffer) => Buffer.alloc(bytes.length, 0xff)]
  ])('%s: nothing is collected, and the job names it, until it is whole again', async (_, damaged) => {
    const { api, digests } = await modelWith({})
    const path = blobFile(api, digests[kind])
    const bytes = readFileSync(path)
    spoil(path, damaged(bytes))
    await keepsAll(api, digests[kind])
    spoil(path, bytes)
    expect(await collect(api)).toMatchObject({ state: 'done' })
    for (const each of Object.values(digests)) expect(existsSync(blobFile(api, each))).toBe(true)
    expect(await api.verify('all')).toMatchObject({ state: 'done', verify: {} })
  })
})

test('a record that cannot be opened at all ends the collection, and nothing is collected', async () => {
  const { api } = await modelWith({})
  const record = join(api.root, 'state/repos/me/m.json')
  rmSync(record)
  mkdirSync(record)
  const before = blobs(api)
  expect(await collect(api)).toMatchObject({ state: 'failed', error: { code: 'E_INTERNAL' } })
  expect(blobs(api)).toEqual(before)
})
