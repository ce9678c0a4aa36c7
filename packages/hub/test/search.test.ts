import { type FakeHub, type FakeRepo, startFakeHub } from '@svc/testkit/fake-hub'
import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createHub, type Hub, type HubQuery } from '../src/index.ts'

const file = (path: string) => ({ path, content: Buffer.from(path) })
const REPOS: readonly FakeRepo[] = [
  { id: 'Acme/Tiny-GGUF', files: [file('a.gguf')], downloads: 9, parameters: 5e8, tags: ['license:mit'] },
  { id: 'Acme/Tiny', files: [file('a.safetensors')], downloads: 50, parameters: 5e8, tags: ['license:apache-2.0'] },
  { id: 'acme/large', files: [file('a.safetensors')], downloads: 70, parameters: 7e10, gated: 'manual' },
  { id: 'acme/mine', files: [file('a.gguf')], private: true }
]
let fake: FakeHub
let hub: Hub
beforeAll(async () => {
  fake = await startFakeHub({ repos: REPOS, tokens: ['hf_t'] })
  hub = createHub({ endpoint: fake.endpoint, retry: { tries: 1 } })
})
afterEach(() => fake.setFaults(undefined))
afterAll(async () => {
  await hub.close()
  await fake.close()
})

const found = async (query: Partial<HubQuery>, from: Hub = hub): Promise<string[]> =>
  (await from.search({ words: 'acme', ...query })).hits.map(({ repoId }) => repoId)

test.each([
  [{}, ['acme/large', 'Acme/Tiny', 'Acme/Tiny-GGUF']],
  [{ words: 'tiny acme' }, ['Acme/Tiny', 'Acme/Tiny-GGUF']],
  [{ formats: ['gguf'] as const }, ['Acme/Tiny-GGUF']],
  [{ license: 'apache-2.0' }, ['Acme/Tiny']],
  [{ minParameters: 1e9 }, ['acme/large']],
  [{ maxParameters: 1e9, formats: ['safetensors'] as const }, ['Acme/Tiny']],
  [{ words: 'nobody & nothing=#' }, []]
])('a search for %j finds %j', async (query, expected) => {
  expect(await found(query)).toEqual(expected)
})

test('a hit has what the hub says about it', async () => {
  expect((await hub.search({ words: 'large' })).hits).toEqual([
    {
      repoId: 'acme/large',
      gated: true,
      private: false,
      formats: ['safetensors'],
      parameters: 7e10,
      downloads: 70,
      updatedAt: '2026-01-01T00:00:00.000Z'
    }
  ])
})

test('each page is reached by the cursor of the previous one', async () => {
  const first = await hub.search({ words: 'acme', limit: 2 })
  expect(first.hits).toHaveLength(2)
  const second = await hub.search({ words: 'acme', limit: 2, cursor: first.cursor })
  expect(second).toEqual({ hits: [expect.objectContaining({ repoId: 'Acme/Tiny-GGUF' })] })
})

test('with a token, private repositories are found; only the hub gets the token', async () => {
  const mine = createHub({ endpoint: fake.endpoint, token: 'hf_t' })
  expect(await found({}, mine)).toContain('acme/mine')
  const before = fake.requests.length
  fake.setFaults(
    scriptedFaults([{ stage: 'search', fault: { kind: 'redirect', location: `${fake.cdnOrigin}/api/models` } }])
  )
  await expect(found({}, mine)).rejects.toMatchObject({ code: 'E_SOURCE_UNAVAILABLE', reason: 'refused-redirect' })
  expect(fake.requests.slice(before).filter(({ origin }) => origin === 'cdn')).toEqual([])
  await mine.close()
})

const many = (length: number) => Array.from({ length }, (_, i) => ({ id: `a/${i}`, tags: ['gguf'] }))
test.each([
  ['more than was asked for', many(5_000), 20],
  ['names that none can have', [{ id: '../../etc' }, { id: 'a/b/c' }, { id: 7 }, null, [], { modelId: 'a/b' }], 1],
  [
    'members of the wrong type',
    [{ id: 'a/b', tags: 'gguf', downloads: -1, gated: 'auto', lastModified: '\u001b[2J' }],
    1
  ]
])('%s is reduced to its valid part', async (_, answer, hits) => {
  fake.setFaults(scriptedFaults([{ stage: 'search', fault: { kind: 'tree', edit: () => answer } }]))
  const page = await hub.search({ words: 'x' })
  expect(page.hits).toHaveLength(hits)
  for (const hit of page.hits) expect(JSON.stringify(hit)).not.toMatch(/\\u001b|-1/)
})

test.each([
  ['an object', { kind: 'tree', edit: () => ({ models: [] }) }],
  ['too many values', { kind: 'tree', edit: () => many(200_000) }],
  ['too many bytes', { kind: 'tree', edit: () => ['x'.repeat(20 << 20)] }],
  ['another hub for the next page', { kind: 'link', href: 'http://127.0.0.9:1/api/models?cursor=x' }],
  ['an error', { kind: 'status', status: 500 }],
  ['no such page', { kind: 'status', status: 404 }],
  ['a login', { kind: 'status', status: 401 }]
] as const)('%s is no answer', async (_, fault) => {
  fake.setFaults(scriptedFaults([{ stage: 'search', fault }]))
  const failure = await hub.search({ words: 'x' }).catch((error: unknown) => error)
  expect(failure).toMatchObject({ code: 'E_SOURCE_UNAVAILABLE' })
  // a search is of no repository
  expect((failure as Error).message).not.toMatch(/repository|listing/)
})

test('a page that links back to an earlier one gives a cursor, and is not followed automatically', async () => {
  const href = `${fake.endpoint}/api/models?cursor=again`
  fake.setFaults(scriptedFaults([{ stage: 'search', fault: { kind: 'link', href } }]))
  const before = fake.requests.length
  expect(await hub.search({ words: 'acme' })).toMatchObject({ cursor: 'again' })
  expect(fake.requests.length - before).toBe(1)
  fake.setFaults(scriptedFaults([{ stage: 'search', fault: { kind: 'link', href: `${href}${'x'.repeat(5000)}` } }]))
  expect(await hub.search({ words: 'acme' })).not.toHaveProperty('cursor')
})
