import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'

const STORES = fileURLToPath(new URL('../../../../vectors/stores/', import.meta.url))

/** A store as that version left it. Git keeps neither modes nor empty folders. */
async function opened(name: string): Promise<TestDaemon> {
  const folder = temporaryFolder()
  const root = join(folder, 'root')
  mkdirSync(root, { mode: 0o700 })
  cpSync(join(STORES, 'blobs'), join(root, 'blobs'), { recursive: true })
  cpSync(join(STORES, name), root, { recursive: true })
  chmodSync(root, 0o700)
  return testDaemon({ folder })
}

/** The texts of all records, by their files. */
function recordsOf(root: string): Record<string, string> {
  const files = readdirSync(join(root, 'state'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.json')
  )
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(root, 'state', file), 'utf8')]))
}

const FORMATS = [
  { name: 'before-imported-at', models: ['me/model', 'me/pinned', 'org/gated'], isPrivate: false, views: 0 },
  { name: 'before-future-name', models: ['me/model', 'org/gated'], isPrivate: true, views: 1 },
  { name: 'before-checksums', models: ['me/model', 'org/gated'], isPrivate: true, views: 1 },
  { name: 'before-companions', models: ['me/model', 'org/gated'], isPrivate: true, views: 1 }
]

describe.each(FORMATS)('a store of the format $name', ({ name, models, isPrivate, views }) => {
  test('opens with all its content', async () => {
    const api = await opened(name)
    const { body } = await api.get('/v1/models')
    expect(body.damaged).toBeUndefined()
    const entries = body.namespaces as { ns: string; name: string; members: object[] }[]
    expect(entries.map((entry) => `${entry.ns}/${entry.name}`)).toEqual(models)
    expect(entries.flatMap(({ members }) => members)).toEqual(
      models.map((model) => expect.objectContaining({ complete: true, private: isPrivate && model === 'me/model' }))
    )
    expect(body.tags.map(({ tag }: { tag: string }) => tag)).toEqual(['1', 'v1'])
    for (const ref of ['me/model:1+q4_0', 'me/model:v1+q4_0', 'org/gated:q8_0']) {
      const { missing, companions } = (await api.open(`svc:///${ref}`)).body
      expect([ref, missing, companions]).toEqual([ref, undefined, undefined])
    }
    expect((await api.get('/v1/views')).body.views).toHaveLength(views)
    expect((await api.verify('all')).verify).toEqual({})
  })

  test('keeps provenance, pins and pending names', async () => {
    const api = await opened(name)
    const { artifacts } = api.running.context
    const { manifestDigest } = (await api.resolve('svc:///org/gated:q8_0')).body
    expect(await artifacts.read(manifestDigest)).toMatchObject({
      source: { kind: 'hf', repo: 'Org/Gated', revision: 'a'.repeat(40) },
      provenance: { access: 'restricted', by: 'hub-token' },
      hints: { trackers: ['http://127.0.0.1:1/announce'], peers: ['127.0.0.1:6881'] }
    })
    const states = []
    for await (const state of artifacts.list()) states.push(state)
    expect(states).toHaveLength(3)
    expect(states.filter(({ pinned }) => pinned)).toHaveLength(models.length === 2 ? 1 : 0)
    const awaited = ['before-checksums', 'before-companions'].includes(name) ? 1 : 0
    expect(await artifacts.toBeNamed('me/later')).toHaveLength(awaited)
    const job = await api.finished((await api.post('/v1/gc', { graceSeconds: 0 })).body)
    // the index of the name that was removed, and nothing else
    expect(job).toMatchObject({ state: 'done', result: { blobs: models.length === 2 ? 1 : 0 } })
    expect((await api.verify('all')).verify).toEqual({})
  })

  test('is converted record by record, when a record changes', async () => {
    const api = await opened(name)
    const before = recordsOf(api.root)
    await api.get('/v1/models')
    expect(recordsOf(api.root)).toEqual(before)
    const ref = 'svc:///me/model:q4_0'
    const { manifestDigest } = (await api.call('PUT', '/v1/private', { body: { ref, private: !isPrivate } })).body
    const body = { root: api.root, ns: 'me', name: 'model', tag: 'v2', index: 'current' }
    expect((await api.post('/svcd/tag', body)).status).toBe(200)
    const changed = [`artifacts/${manifestDigest.slice(7)}.json`, 'repos/me/model.json']
    const after = recordsOf(api.root)
    expect(
      Object.keys(after)
        .filter((file) => after[file] !== before[file])
        .sort()
    ).toEqual(changed)
    for (const file of changed) expect(JSON.parse(after[file]!)).toMatchObject({ version: 4, readers: 2 })
    for (const tag of ['1', 'v1', 'v2']) expect((await api.resolve(`svc:///me/model:${tag}+q4_0`)).status).toBe(200)
  })
})
