import { startFakeHub } from '@svc/testkit/fake-hub'
import type { FakeHubFault, FakeHubFaultRule, FakeTreeEntry } from '@svc/testkit/fake-hub-faults'
import { expect, test } from 'vitest'
import { HubError } from '../src/index.ts'
import { closeAfterTests, fakeHub, hubOf, quick } from './fixtures.ts'

closeAfterTests()

const weights = { seed: 3, sizeBytes: 100_003 }
const repo = {
  id: 'Some-Org/The.Model_1',
  tags: ['license:\u001b[31m', 'license:apache-2.0'],
  formerId: 'Old-Org/Model',
  files: [
    { path: 'model.gguf', content: weights },
    ...Array.from({ length: 25 }, (_, i) => ({ path: `d${i % 3}/f ${i}.txt`, content: Buffer.from(`${i}`) }))
  ]
}

const caught = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (thrown: unknown) => thrown
  )

test("a listing is pinned, complete across pages, and in the hub's spelling", async () => {
  const fake = await fakeHub({ pageSize: 4 })
  const commit = fake.commit(repo)
  const listing = await hubOf(fake).listing('some-org/the.model_1')
  expect(listing).toMatchObject({ repoId: repo.id, commit, private: false, gated: false, restricted: false })
  expect(listing.license).toBe('apache-2.0')
  expect(listing.files.map((file) => file.path).sort()).toEqual(repo.files.map((file) => file.path).sort())
  const large = listing.files.find((file) => file.path === 'model.gguf')
  expect(large).toMatchObject({ sizeBytes: weights.sizeBytes, commit, repoId: repo.id })
  expect(large?.sha256).toMatch(/^sha256:[0-9a-f]{64}$/)
  expect(listing.files.filter((file) => file.gitBlobSha1 !== undefined)).toHaveLength(25)
})

test('a branch that moves while it is listed does not mix two commits', async () => {
  const fake = await fakeHub({ pageSize: 4 })
  const commit = fake.commit(repo)
  fake.setFaults((request) => {
    if (request.stage === 'tree') fake.commit({ ...repo, files: [{ path: 'other', content: new Uint8Array(1) }] })
    return undefined
  })
  const listing = await hubOf(fake).listing(repo.id)
  expect(listing.commit).toBe(commit)
  expect(listing.files).toHaveLength(26)
})

test('revisions are one escaped segment; a commit names itself', async () => {
  const fake = await fakeHub()
  const commit = fake.commit({ ...repo, branch: 'refs/pr/1' })
  const hub = hubOf(fake)
  expect((await hub.listing(repo.id, 'refs/pr/1')).commit).toBe(commit)
  expect(fake.requests.map((request) => request.url)).toContain(`/api/models/${repo.id}/revision/refs%2Fpr%2F1`)
  expect((await hub.listing(repo.id, commit)).commit).toBe(commit)
  // no branch is called main here: the hub's own default is asked for.
  expect((await hub.listing(repo.id)).commit).toBe(commit)
})

test('the commits of branches are named, those of pull requests are not', async () => {
  const fake = await fakeHub()
  const main = fake.commit(repo)
  const files = [{ path: 'other.gguf', content: weights }]
  const dev = fake.commit({ ...repo, branch: 'dev', files })
  fake.commit({ ...repo, branch: 'refs/pr/1', files: [{ path: 'x.gguf', content: weights }] })
  expect([...(await hubOf(fake).namedCommits(repo.id))].sort()).toEqual([main, dev].sort())
  await expect(hubOf(fake).namedCommits('no/such')).rejects.toMatchObject({ code: 'E_SOURCE_FORBIDDEN' })
})

test('a listing whose pages exceed the total size limit is refused', async () => {
  const fake = await fakeHub({ pageSize: 4 })
  fake.commit(repo)
  const hub = hubOf(fake, { limits: { listingBytes: 2_000 } })
  await expect(hub.listing(repo.id)).rejects.toMatchObject({ code: 'E_NOT_IMPORTABLE', reason: 'bad-listing' })
  expect(fake.requests.filter(({ stage }) => stage === 'tree').length).toBeLessThan(7)
})

test('a renamed repository is followed and reported by its new name', async () => {
  const fake = await fakeHub({ repos: [repo] })
  expect((await hubOf(fake).listing('old-org/model')).repoId).toBe(repo.id)
})

const change = (edit: (entry: FakeTreeEntry) => unknown): FakeHubFault => ({
  kind: 'tree',
  edit: (entries) => {
    const entry = entries.find((one) => one.path === 'model.gguf')
    if (entry) edit(entry)
    return entries
  }
})
const add = (entry: unknown): FakeHubFault => ({ kind: 'tree', edit: (entries) => [...entries, entry] })
const file = (path: unknown) => ({ type: 'file', oid: '1'.repeat(40), size: 1, path })

test.each<[string, FakeHubFault]>([
  ...[
    '/etc/passwd',
    '../x',
    'a/../../x',
    'a//b',
    './a',
    'a/.',
    'a\\b',
    'a\nb',
    'a\0b',
    '.git/config',
    'sub/.GIT/x',
    '',
    'a/',
    'x'.repeat(1025),
    '\ud800'
  ].map((path): [string, FakeHubFault] => [`path ${JSON.stringify(path).slice(0, 40)}`, add(file(path))]),
  ['a path that is not text', add(file(7))],
  ['a duplicate path', add(file('model.gguf'))],
  ['two names equal after NFC', { kind: 'tree', edit: (all) => [...all, file('e\u0301.txt'), file('\u00e9.txt')] }],
  ['a file that is also a folder', add(file('model.gguf/x'))],
  ['a folder that is also a file', add({ type: 'directory', oid: '0'.repeat(40), size: 0, path: 'model.gguf' })],
  ['a negative size', change((entry) => (entry.size = -1))],
  ['a size beyond safe integers', change((entry) => (entry.size = 2 ** 53))],
  ['a fractional size', change((entry) => (entry.size = 1.5))],
  [
    'sizes that overflow together',
    { kind: 'tree', edit: (all) => [...all, { ...file('p'), size: 2 ** 53 - 1 }, { ...file('q'), size: 2 ** 53 - 1 }] }
  ],
  ['an oid that is not hex', change((entry) => (entry.oid = 'z'.repeat(40)))],
  ['an oid in upper case', change((entry) => (entry.oid = 'A'.repeat(40)))],
  ['an lfs oid that is not hex', change((entry) => ((entry.lfs as { oid: string }).oid = 'z'.repeat(64)))],
  ['an lfs size that differs', change((entry) => (entry.lfs as { size: number }).size++)],
  ["an lfs oid that is not the pointer's", change((entry) => ((entry.lfs as { oid: string }).oid = '1'.repeat(64)))],
  ['an lfs part that is not an object', change((entry) => (entry.lfs = 'x'))],
  ['an unknown type', change((entry) => (entry.type = 'symlink'))],
  ['an entry that is not an object', add(null)],
  ['a page that is not a list', { kind: 'tree', edit: () => ({}) }],
  ['a next page at another host', { kind: 'link', href: 'http://127.0.0.3:9/x' }],
  ['a next page that is this page', { kind: 'link', href: '?recursive=true&expand=false' }]
])('a listing with %s is refused whole', async (_name, fault) => {
  const fake = await fakeHub({ repos: [repo] }, [{ stage: 'tree', fault }])
  expect(await caught(hubOf(fake).listing(repo.id))).toMatchObject({
    name: 'HubError',
    code: 'E_NOT_IMPORTABLE',
    reason: 'bad-listing'
  })
  expect(fake.requests.every((request) => request.stage === 'info' || request.stage === 'tree')).toBe(true)
})

test('a listing with too many entries or pages is refused', async () => {
  const fake = await fakeHub({ repos: [repo], pageSize: 4 })
  await expect(hubOf(fake, { limits: { entries: 20 } }).listing(repo.id)).rejects.toMatchObject({
    reason: 'bad-listing'
  })
  await expect(hubOf(fake, { limits: { pages: 3 } }).listing(repo.id)).rejects.toMatchObject({ reason: 'bad-listing' })
  await expect(hubOf(fake, { limits: { jsonBytes: 300 } }).listing(repo.id)).rejects.toMatchObject({
    reason: 'bad-listing'
  })
})

test('a page with very many values is refused unparsed; what nobody asked for in an answer does not count', async () => {
  const fake = await fakeHub({ repos: [repo] }, [
    { stage: 'tree', fault: { kind: 'tree', edit: () => Array.from({ length: 300_000 }, () => ({})) } }
  ])
  await expect(hubOf(fake).listing(repo.id)).rejects.toMatchObject({ code: 'E_NOT_IMPORTABLE', reason: 'bad-listing' })
  const siblings = Array.from({ length: 200_000 }, (_, i) => ({ rfilename: `${i}` }))
  const body = JSON.stringify({ siblings, sha: 'a'.repeat(40), id: repo.id, private: false, gated: false })
  const long = await fakeHub({ repos: [repo] }, [{ stage: 'info', fault: { kind: 'status', status: 200, body } }])
  expect(await hubOf(long).info(repo.id)).toMatchObject({ commit: 'a'.repeat(40), repoId: repo.id })
})

/** What a hub may send instead of a hash. */
const UNTOLD: readonly [string, unknown][] = [
  ['null', null],
  ['nothing', undefined],
  ['an empty text', ''],
  ['zeros', '0'.repeat(64)],
  ['fewer zeros', '0'.repeat(40)],
  ['asterisks', '*'.repeat(64)],
  ['fewer asterisks', '***']
]
const lfsOf = (entry: FakeTreeEntry) => entry.lfs as Record<string, unknown>
const WAYS: readonly [string, (hash: unknown) => FakeHubFault][] = [
  ['a SHA-256', (hash) => change((entry) => (lfsOf(entry).oid = hash))],
  [
    'a SHA-256 without the size of its pointer',
    (hash) => change((entry) => (entry.lfs = { oid: hash, size: entry.size }))
  ],
  [
    'a git name',
    (hash) => ({
      kind: 'tree',
      edit: (all) => all.map((entry) => (entry.lfs === undefined ? { ...entry, oid: hash } : entry))
    })
  ],
  [
    'all hashes',
    (hash) => change((entry) => Object.assign(entry, { oid: hash, lfs: { ...lfsOf(entry), oid: hash }, xetHash: hash }))
  ]
]

test.each(WAYS.flatMap(([what, fault]) => UNTOLD.map(([instead, hash]) => [instead, what, fault(hash)] as const)))(
  '%s instead of %s: a gated repository says what it needs, another is refused, and no byte is asked for',
  async (instead, _, fault) => {
    for (const gated of ['manual', false] as const) {
      const fake = await fakeHub({ repos: [{ ...repo, gated }], tokens: ['in'] }, [{ stage: 'tree', fault }])
      const isGated = gated !== false || instead.endsWith('asterisks')
      for (const token of ['', 'in']) {
        const error = await caught(hubOf(fake, { token, tokenName: 'MY_TOKEN' }).listing(repo.id))
        expect(error).toMatchObject(
          isGated
            ? { code: 'E_SOURCE_FORBIDDEN', reason: 'gated' }
            : { code: 'E_NOT_IMPORTABLE', reason: 'bad-listing' }
        )
        const { message } = error as HubError
        expect(message).toContain('does not tell the hash of')
        if (isGated)
          expect(message).toMatch(token === '' ? /accept .* then set MY_TOKEN/ : /accept .* account of MY_TOKEN/)
      }
      expect(fake.requests.every(({ stage }) => stage === 'info' || stage === 'tree')).toBe(true)
    }
  }
)

test('a large file of a gated repository without its place in large-file storage has an untold hash: the one there is of its pointer', async () => {
  const content = { seed: 4, sizeBytes: 11 << 20 }
  const withoutLfs: FakeHubFault = { kind: 'tree', edit: (all) => all.map(({ lfs: _, ...entry }) => entry) }
  const files = [{ path: 'big.gguf', content }, ...repo.files]
  const fake = await fakeHub({ repos: [{ ...repo, files, gated: 'auto' }] }, [{ stage: 'tree', fault: withoutLfs }])
  await expect(hubOf(fake).listing(repo.id)).rejects.toMatchObject({ reason: 'gated', details: { path: 'big.gguf' } })
})

test('with access a masked listing is a plain one', async () => {
  const fake = await fakeHub({ repos: [{ ...repo, gated: 'auto', maskHashes: true }], tokens: ['in'] })
  await expect(hubOf(fake).listing(repo.id)).rejects.toMatchObject({ code: 'E_SOURCE_FORBIDDEN', reason: 'gated' })
  expect(await hubOf(fake, { token: 'in' }).listing(repo.id)).toMatchObject({ gated: true, restricted: true })
})

const status = (code: number, headers: Record<string, string> = {}): FakeHubFaultRule => ({
  stage: 'info',
  fault: { kind: 'status', status: code, headers }
})
test.each<[string, FakeHubFaultRule, string | undefined, HubError['code'], HubError['reason']]>([
  ['404 RepoNotFound', status(404, { 'x-error-code': 'RepoNotFound' }), 't', 'E_UNKNOWN_REF', 'no-such-repo'],
  [
    '404 RevisionNotFound',
    status(404, { 'x-error-code': 'RevisionNotFound' }),
    undefined,
    'E_UNKNOWN_REF',
    'no-such-revision'
  ],
  ['404 without a word', status(404), undefined, 'E_UNKNOWN_REF', 'no-such-repo'],
  [
    'anonymous 401',
    status(401, { 'x-error-code': 'RepoNotFound' }),
    undefined,
    'E_SOURCE_FORBIDDEN',
    'hidden-or-absent'
  ],
  ['401 with a token', status(401), 't', 'E_SOURCE_FORBIDDEN', 'token-rejected'],
  ['401 GatedRepo', status(401, { 'x-error-code': 'GatedRepo' }), undefined, 'E_SOURCE_FORBIDDEN', 'gated'],
  ['403 GatedRepo', status(403, { 'x-error-code': 'GatedRepo' }), 't', 'E_SOURCE_FORBIDDEN', 'gated'],
  [
    '403 disabled',
    status(403, { 'x-error-message': 'Access to this resource is disabled.' }),
    undefined,
    'E_SOURCE_FORBIDDEN',
    'disabled'
  ],
  ['403 with a token', status(403), 't', 'E_SOURCE_FORBIDDEN', 'denied'],
  ['451', status(451), undefined, 'E_SOURCE_FORBIDDEN', 'legal'],
  ['429', status(429, { 'retry-after': '301' }), undefined, 'E_RATE_LIMITED', 'rate-limited'],
  ['408', status(408), undefined, 'E_SOURCE_UNAVAILABLE', 'unreachable'],
  ['500', status(500), undefined, 'E_SOURCE_UNAVAILABLE', 'unreachable'],
  ['400', status(400), undefined, 'E_SOURCE_UNAVAILABLE', 'bad-answer'],
  [
    'not JSON',
    { stage: 'info', fault: { kind: 'status', status: 200, body: '<html>' } },
    undefined,
    'E_SOURCE_UNAVAILABLE',
    'bad-answer'
  ],
  [
    'not UTF-8',
    { stage: 'info', fault: { kind: 'headers', headers: { 'content-encoding': 'gzip' } } },
    undefined,
    'E_SOURCE_UNAVAILABLE',
    'bad-answer'
  ],
  [
    'a bomb of brackets',
    { stage: 'info', fault: { kind: 'status', status: 200, body: '['.repeat(100_000) } },
    undefined,
    'E_SOURCE_UNAVAILABLE',
    'bad-answer'
  ],
  [
    'a closed connection',
    { stage: 'tree', fault: { kind: 'refuse' } },
    undefined,
    'E_SOURCE_UNAVAILABLE',
    'unreachable'
  ],
  [
    'a redirect elsewhere',
    { stage: 'info', fault: { kind: 'redirect', location: 'http://127.0.0.2:9/' } },
    't',
    'E_SOURCE_UNAVAILABLE',
    'refused-redirect'
  ],
  [
    'a redirect loop',
    { stage: 'tree', fault: { kind: 'redirect', location: 'self' } },
    undefined,
    'E_SOURCE_UNAVAILABLE',
    'refused-redirect'
  ]
])('%s has its code', async (_name, rule, token, code, reason) => {
  const fake = await fakeHub({ repos: [repo], tokens: ['t'] }, [rule])
  const error = await caught(hubOf(fake, token === undefined ? {} : { token }).listing(repo.id))
  expect(error).toBeInstanceOf(HubError)
  expect(error).toMatchObject({ code, reason })
})

test('every error about a refused token or a gated repository says what to do', async () => {
  const fake = await fakeHub({ repos: [repo], tokens: ['t'] })
  const error = (await caught(hubOf(fake, { token: 'stale-secret' }).listing(repo.id))) as HubError
  expect(error.reason).toBe('token-rejected')
  expect(JSON.stringify([error.message, error.details])).not.toContain('stale-secret')
})

test('a host that does not answer is E_SOURCE_UNAVAILABLE', async () => {
  const fake = await startFakeHub()
  await fake.close()
  await expect(hubOf(fake).listing(repo.id)).rejects.toMatchObject({
    code: 'E_SOURCE_UNAVAILABLE',
    reason: 'unreachable'
  })
})

test('rate limits are waited for, reported, and bounded', async () => {
  const { waits, retry } = quick()
  const fake = await fakeHub({ repos: [repo] }, [
    { ...status(429, { 'retry-after': '7' }), times: 1 },
    { ...status(429, { ratelimit: '"api";r=0;t=55' }), times: 1 }
  ])
  const told: string[] = []
  await hubOf(fake, { retry }).listing(repo.id, undefined, { onWaiting: (waiting) => told.push(waiting.reason) })
  expect(waits).toEqual([7_000, 55_000])
  expect(told).toEqual(['rate-limited', 'rate-limited'])
  fake.setFaults(() => ({ kind: 'status', status: 429, headers: { 'retry-after': '100' } }))
  waits.length = 0
  await expect(hubOf(fake, { retry }).listing(repo.id)).rejects.toMatchObject({ code: 'E_RATE_LIMITED' })
  expect(waits).toEqual([100_000, 100_000, 100_000])
})

test.each(['', '.', '..', 'a/', '/a', 'a/b/c', '../x', 'a/..', 'a b/c', 'ä/b'])(
  '%j is not a repository',
  async (name) => {
    const fake = await fakeHub()
    await expect(hubOf(fake).listing(name)).rejects.toMatchObject({ code: 'E_UNKNOWN_REF', reason: 'bad-request' })
    expect(fake.requests).toHaveLength(0)
  }
)
test.each(['', '.', '..', 'a b', 'a\n', 'x'.repeat(256)])('%j is not a revision', async (revision) => {
  const fake = await fakeHub()
  await expect(hubOf(fake).listing(repo.id, revision)).rejects.toMatchObject({ reason: 'bad-request' })
  expect(fake.requests).toHaveLength(0)
})
