import { ClientError } from '@svc/client'
import type { ErrorCode, Job } from '@svc/client/protocol'
import { systemClock } from '@svc/internal-clock'
import { type FakeRepo, startFakeHub } from '@svc/testkit/fake-hub'
import { nameContent } from '@svc/testkit/fake-hub-content'
import {
  type FakeHubFault,
  type FakeHubFaultRule,
  type FakeTreeEntry,
  scriptedFaults
} from '@svc/testkit/fake-hub-faults'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LANE_WIDTHS } from '../../../src/jobs/lanes.ts'
import {
  fakeHub,
  finished,
  importRepo,
  keepForAll,
  manifestsOf,
  type Rig,
  rigOf,
  SMALL,
  storedBlobs,
  undoAfterTests,
  wrongBlobs
} from './fixtures.ts'

undoAfterTests()

/** One daemon for all tests; each test has a repository, and so blobs, of its own. */
let rig: Rig
let seed = 0
beforeAll(async () => {
  rig = await rigOf(await fakeHub({ tokens: ['hf_good'] }))
  keepForAll()
})
afterAll(async () => expect(await wrongBlobs(rig)).toEqual([]))

const GGUF = 'model-q8_0.gguf'
function freshRepo(rules: readonly FakeHubFaultRule[]): FakeRepo {
  const repo: FakeRepo = {
    id: `Some-Org/Model-${++seed}`,
    files: [
      { path: GGUF, content: { seed, sizeBytes: 400_007 } },
      { path: 'extra.bin', content: { seed: seed + 500, sizeBytes: 70_000 } },
      { path: 'tokenizer_config.json', content: Buffer.from(`{"a":${seed}}`) },
      { path: 'LICENSE', content: Buffer.from('all yours') }
    ]
  }
  rig.fake.setFaults(undefined)
  rig.fake.commit(repo)
  rig.fake.setFaults(scriptedFaults(rules))
  return repo
}

/** The manifest's weights are the repository's, byte for byte. */
async function expectRight(job: Job, repo: FakeRepo, at = rig): Promise<void> {
  expect(job.error).toBeUndefined()
  const [manifest] = await manifestsOf(at, job)
  const { content } = repo.files[0]!
  expect(manifest?.files.find((file) => file.name === GGUF)?.digest).toBe(`sha256:${nameContent(content).sha256}`)
}

const on = (fault: FakeHubFault, times?: number, skip?: number): FakeHubFaultRule[] => [
  { stage: 'cdn', path: GGUF, fault, ...(times !== undefined && { times }), ...(skip !== undefined && { skip }) }
]

test.each<[string, FakeHubFaultRule[]]>([
  ['cut at N bytes', on({ kind: 'cut', afterBytes: 20_000 }, 5)],
  ['drip', on({ kind: 'drip', stepBytes: 5_000, everyMs: 1 }, 3)],
  ['wrong bytes of the right length, once', on({ kind: 'wrong-bytes', atByte: 77 }, 1)],
  ['short body', on({ kind: 'short-body', missingBytes: 1 }, 2)],
  ['200 for a Range', on({ kind: 'ignore-range' })],
  ['wrong Content-Range', on({ kind: 'content-range', value: 'bytes 1-2/400007' }, 2)],
  ['changed ETag', on({ kind: 'etag', value: '"x"' }, 1, 3)],
  ['429 with Retry-After in seconds', on({ kind: 'status', status: 429, headers: { 'retry-after': '2' } }, 2)],
  [
    '429 with Retry-After as a date',
    on(
      { kind: 'status', status: 429, headers: { 'retry-after': new Date(systemClock.now() + 60_000).toUTCString() } },
      2
    )
  ],
  ['429 with RateLimit', on({ kind: 'status', status: 429, headers: { ratelimit: '"resolvers";r=0;t=9' } }, 2)],
  ['429 without a word', on({ kind: 'status', status: 429 }, 2)],
  ['5xx burst', on({ kind: 'status', status: 502 }, 4)],
  ['expired addresses', on({ kind: 'status', status: 403 }, 3, 2)],
  [
    'wrong small file, once',
    [{ stage: 'resolve', path: 'tokenizer_config.json', skip: 1, times: 1, fault: { kind: 'wrong-bytes', atByte: 0 } }]
  ],
  [
    'listing: 5xx, then not JSON',
    [
      { stage: 'info', times: 2, fault: { kind: 'status', status: 503 } },
      { stage: 'tree', times: 1, fault: { kind: 'status', status: 200, body: '<html>' } }
    ]
  ]
])('%s: the store has the right bytes', async (_name, rules) => {
  const repo = freshRepo(rules)
  await expectRight(await importRepo(rig, repo.id), repo)
})

test('stalls are overcome; a source that only stalls is a 502', async () => {
  const at = await rigOf(rig.fake, { hub: { retry: { stallMs: 400 } } })
  const repo = freshRepo(on({ kind: 'stall', afterBytes: 10_000 }, 2))
  await expectRight(await importRepo(at, repo.id), repo, at)
  const { id } = freshRepo([{ stage: 'tree', fault: { kind: 'stall', afterBytes: 3 } }])
  expect(await refused(at.client.importHf({ repo: id }))).toEqual({ status: 502, code: 'E_SOURCE_UNAVAILABLE' })
})

test('imports from slow sources free their lanes for the next ones', async () => {
  const at = await rigOf(rig.fake, { hub: { retry: { slowMs: 2_000, tries: 2 } } })
  const started: Job[] = []
  rig.fake.setFaults(undefined)
  for (let n = 0; n < LANE_WIDTHS['import-hf']; n++) {
    const id = `Some-Org/Drip-${n}`
    rig.fake.commit({ id, files: [{ path: 'drip-q8_0.gguf', content: { seed: ++seed, sizeBytes: 400_007 } }] })
    rig.fake.setFaults(
      scriptedFaults([{ stage: 'cdn', path: 'drip-q8_0.gguf', fault: { kind: 'drip', stepBytes: 1, everyMs: 100 } }])
    )
    started.push(await at.client.importHf({ repo: id }))
  }
  const repo: FakeRepo = {
    id: 'Some-Org/Behind',
    files: [{ path: GGUF, content: { seed: ++seed, sizeBytes: 400_007 } }]
  }
  rig.fake.commit(repo)
  await expectRight(await importRepo(at, repo.id), repo, at)
  for (const job of started)
    expect(await finished(at, job)).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
})

test('a branch that moves after the listing changes nothing', async () => {
  const repo = freshRepo([])
  rig.fake.setFaults((request) => {
    if (request.stage === 'resolve')
      rig.fake.commit({ ...repo, files: [{ path: GGUF, content: { seed: 99, sizeBytes: 5 } }] })
    return undefined
  })
  await expectRight(await importRepo(rig, repo.id), repo)
})

test.each<[string, FakeHubFaultRule[], ErrorCode]>([
  ['wrong bytes twice', on({ kind: 'wrong-bytes', atByte: 5 }), 'E_NOT_IMPORTABLE'],
  [
    'a wrong small file twice',
    [{ stage: 'resolve', path: 'tokenizer_config.json', fault: { kind: 'wrong-bytes', atByte: 0 } }],
    'E_NOT_IMPORTABLE'
  ],
  [
    'a wrong file that would only be dropped',
    [{ stage: 'cdn', path: 'extra.bin', fault: { kind: 'wrong-bytes', atByte: 9 } }],
    'E_NOT_IMPORTABLE'
  ],
  ['another size', on({ kind: 'content-range', value: 'bytes 0-65535/65536' }), 'E_NOT_IMPORTABLE'],
  ['a CDN that refuses every address', on({ kind: 'status', status: 403 }), 'E_SOURCE_UNAVAILABLE'],
  ['a CDN that is down', on({ kind: 'refuse' }), 'E_SOURCE_UNAVAILABLE'],
  [
    'a redirect loop',
    [{ stage: 'resolve', path: GGUF, fault: { kind: 'redirect', location: 'self' } }],
    'E_SOURCE_UNAVAILABLE'
  ],
  [
    'a rate limit beyond five minutes',
    on({ kind: 'status', status: 429, headers: { 'retry-after': '400' } }),
    'E_RATE_LIMITED'
  ],
  [
    'gating that shows late',
    [
      {
        stage: 'resolve',
        path: 'tokenizer_config.json',
        fault: { kind: 'status', status: 403, headers: { 'x-error-code': 'GatedRepo' } }
      }
    ],
    'E_SOURCE_FORBIDDEN'
  ],
  [
    'a commit that is gone',
    [
      {
        stage: 'resolve',
        path: GGUF,
        fault: { kind: 'status', status: 404, headers: { 'x-error-code': 'RevisionNotFound' } }
      }
    ],
    'E_UNKNOWN_REF'
  ]
])('%s: a failed job, and no artifact', async (_name, rules, code) => {
  const repo = freshRepo(rules)
  const job = await importRepo(rig, repo.id)
  expect(job).toMatchObject({ state: 'failed', error: { code } })
  expect((await rig.client.models()).namespaces.map(({ name }) => name)).not.toContain(
    repo.id.toLowerCase().split('/')[1]
  )
})

/** Two weights of one size. */
function twins(contents: readonly [number, number], rules: readonly FakeHubFaultRule[] = []): FakeRepo {
  const repo: FakeRepo = {
    id: `Some-Org/Twins-${++seed}`,
    files: ['m-q4_0.gguf', 'm-q8_0.gguf'].map((path, index) => ({
      path,
      content: { seed: seed + contents[index]!, sizeBytes: 100_003 }
    }))
  }
  rig.fake.setFaults(undefined)
  rig.fake.commit(repo)
  rig.fake.setFaults(scriptedFaults(rules))
  return repo
}

test('two files of one size that are swapped: a failed job, and neither is stored', async () => {
  const swap = (entries: FakeTreeEntry[]): unknown => {
    const paths = entries.map(({ path }) => path).reverse()
    return entries.map((entry, index) => ({ ...entry, path: paths[index] }))
  }
  const repo = twins([7_000, 8_000], [{ stage: 'tree', fault: { kind: 'tree', edit: swap } }])
  const job = await importRepo(rig, repo.id)
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  const weights = repo.files.map(({ content }) => nameContent(content).sha256)
  const stored = await storedBlobs(rig)
  expect(stored.filter((digest) => weights.some((hex) => digest === `sha256:${hex}`))).toEqual([])
})

test('one content under two names: each artifact has it, and it is stored once', async () => {
  const repo = twins([9_000, 9_000])
  const job = await importRepo(rig, repo.id)
  expect(job.error).toBeUndefined()
  const digest = `sha256:${nameContent(repo.files[0]!.content).sha256}`
  const manifests = await manifestsOf(rig, job)
  expect(manifests.map(({ files }) => files.find(({ kind }) => kind === 'weights.gguf')?.digest)).toEqual([
    digest,
    digest
  ])
  expect((await storedBlobs(rig)).filter((one) => one === digest)).toHaveLength(1)
})

test('a wrong file is named in the error', async () => {
  const repo = freshRepo(on({ kind: 'wrong-bytes', atByte: 5 }))
  expect((await importRepo(rig, repo.id)).error?.message).toContain(GGUF)
})

test('a redirect to another host gets no token, and its bytes are verified', async () => {
  const stranger = await startFakeHub({ repos: [SMALL] })
  try {
    // the same path at another origin, which has other bytes for it: an answer, but not the file.
    const fake = await fakeHub({ repos: [SMALL], tokens: ['hf_good'] })
    const rig = await rigOf(fake, { token: 'hf_good' })
    fake.setFaults((request) =>
      request.stage === 'resolve' && request.path === 'LICENSE'
        ? { kind: 'redirect', location: `${stranger.endpoint}/Some-Org/Small.Model/resolve/main/README.md` }
        : undefined
    )
    const job = await importRepo(rig, SMALL.id)
    expect(job.error?.code).toBe('E_NOT_IMPORTABLE')
    expect(stranger.requests.length).toBeGreaterThan(0)
    expect(stranger.requests.every((request) => request.headers.authorization === undefined)).toBe(true)
  } finally {
    await stranger.close()
  }
})

const refused = (work: Promise<unknown>): Promise<{ status: number | undefined; code: string } | undefined> =>
  work.then(
    () => undefined,
    (error: unknown) => {
      if (!(error instanceof ClientError)) throw error
      return { status: error.status, code: error.code }
    }
  )
const info = (status: number, headers: Record<string, string> = {}): FakeHubFaultRule[] => [
  { stage: 'info', fault: { kind: 'status', status, headers } }
]

test.each<[string, FakeHubFaultRule[], ErrorCode, string?]>([
  ['404 RepoNotFound', info(404, { 'x-error-code': 'RepoNotFound' }), 'E_UNKNOWN_REF'],
  ['404 RevisionNotFound', info(404, { 'x-error-code': 'RevisionNotFound' }), 'E_UNKNOWN_REF'],
  ['anonymous 401', info(401, { 'x-error-code': 'RepoNotFound' }), 'E_SOURCE_FORBIDDEN'],
  ['401 GatedRepo', info(401, { 'x-error-code': 'GatedRepo' }), 'E_SOURCE_FORBIDDEN'],
  ['403 GatedRepo', info(403, { 'x-error-code': 'GatedRepo' }), 'E_SOURCE_FORBIDDEN', 'hf_good'],
  ['401 invalid token', [], 'E_SOURCE_FORBIDDEN', 'hf_stale'],
  ['403 disabled', info(403, { 'x-error-message': 'Access to this resource is disabled.' }), 'E_SOURCE_FORBIDDEN'],
  ['451', info(451), 'E_SOURCE_FORBIDDEN'],
  ['429', info(429, { 'retry-after': '290' }), 'E_RATE_LIMITED'],
  ['408', info(408), 'E_SOURCE_UNAVAILABLE'],
  ['500', info(500), 'E_SOURCE_UNAVAILABLE'],
  ['a closed connection', [{ stage: 'tree', fault: { kind: 'refuse' } }], 'E_SOURCE_UNAVAILABLE'],
  ['not JSON', [{ stage: 'tree', fault: { kind: 'status', status: 200, body: 'no' } }], 'E_SOURCE_UNAVAILABLE'],
  [
    'gated bytes behind a public listing',
    [{ stage: 'resolve', fault: { kind: 'status', status: 401, headers: { 'x-error-code': 'GatedRepo' } } }],
    'E_SOURCE_FORBIDDEN'
  ]
])('before the job, %s: 502', async (_name, rules, code, token) => {
  const { id } = freshRepo(rules)
  const at = token === undefined ? rig : await rigOf(rig.fake, { token })
  const before = await at.client.jobs()
  expect(await refused(at.client.importHf({ repo: id }))).toEqual({ status: 502, code })
  expect(await at.client.jobs()).toEqual(before)
})

const edit = (change: (entries: FakeTreeEntry[]) => unknown): FakeHubFault => ({ kind: 'tree', edit: change })

/** Of a page's files in large-file storage, each second one, or all. */
const untold = (hash: unknown, isMixed: boolean): FakeHubFault =>
  edit((entries) =>
    entries.map((entry, n) =>
      entry.lfs === undefined || (isMixed && n % 2 === 0) ? entry : { ...entry, lfs: { ...entry.lfs, oid: hash } }
    )
  )
test.each([
  ['null', null],
  ['nothing', undefined],
  ['zeros', '0'.repeat(64)],
  ['asterisks', '*'.repeat(64)]
])(
  'a gated repository that lists %s instead of hashes, of some files or all: 502 that says so, and nothing is fetched or stored',
  async (_, hash) => {
    for (const isMixed of [true, false]) {
      const { id } = freshRepo([{ stage: 'tree', fault: untold(hash, isMixed) }])
      rig.fake.setAccess(id, { gated: 'manual' })
      const [requests, stored] = [rig.fake.requests.length, await storedBlobs(rig)]
      const error = await rig.client.importHf({ repo: id }).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ status: 502, code: 'E_SOURCE_FORBIDDEN' })
      expect((error as Error).message).toMatch(/gated \(the hub does not tell the hash of .*accept its conditions/)
      expect(rig.fake.requests.slice(requests).map(({ stage }) => stage)).toEqual(['info', 'tree'])
      expect(await storedBlobs(rig)).toEqual(stored)
    }
  }
)

test('a gated repository that hides where its files are kept is given up before a byte, or its files are wrong; nothing is stored', async () => {
  const withoutLfs = edit((entries) => entries.map(({ lfs: _, ...entry }) => entry))
  const { id } = freshRepo([{ stage: 'tree', fault: withoutLfs }])
  rig.fake.setAccess(id, { gated: 'manual' })
  const stored = await storedBlobs(rig)
  expect(await refused(rig.client.importHf({ repo: id }))).toEqual({ status: 502, code: 'E_SOURCE_FORBIDDEN' })
  // the bytes are open all the same: what is listed is the name of a pointer, which no byte of theirs has
  rig.fake.setAccess(id, { gated: false })
  expect(await importRepo(rig, id)).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  expect((await storedBlobs(rig)).filter((digest) => !stored.includes(digest)).length).toBeLessThanOrEqual(2)
})

test('a hub that cannot be reached: 502', async () => {
  const fake = await fakeHub()
  const rig = await rigOf(fake)
  await fake.close()
  expect(await refused(rig.client.importHf({ repo: SMALL.id }))).toEqual({ status: 502, code: 'E_SOURCE_UNAVAILABLE' })
})

test.each([
  [{}],
  [{ repo: 7 }],
  [{ repo: '' }],
  [{ repo: 'a/b/c' }],
  [{ repo: '../b' }],
  [{ repo: 'a/' }],
  [{ repo: '_a/b' }],
  [{ repo: 'library/x' }],
  [{ repo: 'svc/x' }],
  [{ repo: `${'a'.repeat(65)}/b` }],
  [{ repo: 'a/b', revision: 7 }],
  [{ repo: 'a/b', revision: '' }],
  [{ repo: 'a/b', revision: '..' }],
  [{ repo: 'a/b', revision: 'x y' }]
])('the body %j is a 400, and the hub is not asked', async (body) => {
  const before = rig.fake.requests.length
  expect(await refused(rig.client.importHf(body as never))).toEqual({ status: 400, code: 'E_BAD_REQUEST' })
  expect(rig.fake.requests).toHaveLength(before)
})

const extra = (path: string): FakeHubFault =>
  edit((entries) => [...entries, { type: 'file', oid: '1'.repeat(40), size: 1, path }])
test.each<[string, FakeHubFault]>([
  ['an absolute path', extra('/etc/x.gguf')],
  ['a path that climbs', extra('a/../../x.gguf')],
  ['a backslash', extra('a\\b.gguf')],
  ['.git', extra('.git/config')],
  ['a duplicate', extra(GGUF)],
  ['a file that is also a folder', extra(`${GGUF}/x`)],
  ['a size beyond safe integers', edit((entries) => entries.map((entry) => ({ ...entry, size: 2 ** 60 })))],
  [
    'a pointer that does not belong',
    edit((entries) => entries.map((entry) => (entry.lfs ? { ...entry, oid: '1'.repeat(40) } : entry)))
  ],
  ['pages at a foreign host', { kind: 'link', href: 'http://127.0.0.9:1/' }]
])('a hostile listing with %s is refused whole: 502, no byte fetched, nothing stored', async (_name, fault) => {
  const { id } = freshRepo([{ stage: 'tree', fault }])
  const [requests, stored] = [rig.fake.requests.length, await storedBlobs(rig)]
  expect(await refused(rig.client.importHf({ repo: id }))).toEqual({ status: 502, code: 'E_NOT_IMPORTABLE' })
  expect(rig.fake.requests.slice(requests).map(({ stage }) => stage)).toEqual(['info', 'tree'])
  expect(await storedBlobs(rig)).toEqual(stored)
})
