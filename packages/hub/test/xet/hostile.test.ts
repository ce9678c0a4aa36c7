import { scriptedFaults } from '@svc/testkit/fake-hub-faults'
import type { FakeReconstruction, FakeTerm, FakeXetFault, FakeXetOptions } from '@svc/testkit/fake-xet'
import { expect, test } from 'vitest'
import { closeAfterTests } from '../fixtures.ts'
import { apartRig, closeXetAfterTests, fetchAll, weights, withInsertion, type XetRig, xetRig } from './fixtures.ts'

closeXetAfterTests()
closeAfterTests()

const BEFORE = weights(400_000, 1)
const NOW = withInsertion(BEFORE)
const LIMITS = { smallFileBytes: 64 << 10, jsonBytes: 64 << 10 }
/** The hub's listings are read with the same bound, so they are made small. */
const rigWith = (options: FakeXetOptions = {}): Promise<XetRig> => xetRig(BEFORE, NOW, options, { limits: LIMITS })

/** Whatever the service does, the file is right, and nobody was asked more often than this. */
async function expectPlain(rig: XetRig, { requests = 4 }: { readonly requests?: number } = {}): Promise<void> {
  const { failure } = await fetchAll(rig)
  expect(failure).toBeInstanceOf(Error)
  expect(Buffer.compare(rig.sink.bytes, NOW)).toBe(0)
  expect(rig.xet.requests.length).toBeLessThanOrEqual(requests)
}

const termsOf = (answer: FakeReconstruction): FakeTerm[] => answer.terms as FakeTerm[]
const withTerm = (edit: (term: FakeTerm) => unknown) => (answer: FakeReconstruction) => ({
  ...answer,
  terms: termsOf(answer).map((term, i) => (i === 0 ? edit(term) : term))
})
type Fetch = { url: string; ranges: { chunks: unknown; bytes: unknown }[] }
const withFetches = (edit: (fetch: Fetch) => unknown) => (answer: FakeReconstruction) => ({
  ...answer,
  xorbs: Object.fromEntries(
    Object.entries(answer.xorbs as Record<string, Fetch[]>).map(([hash, fetches]) => [hash, fetches.map(edit)])
  )
})
const withUrl = (url: string) => withFetches((fetch) => ({ ...fetch, url }))
const withBytes = (start: unknown, end: unknown) =>
  withFetches((fetch) => ({ ...fetch, ranges: fetch.ranges.map((range) => ({ ...range, bytes: { start, end } })) }))
const sizeless = ({ chunk_byte_sizes: _, ...term }: FakeTerm): FakeTerm => term

test('the input of the cases below passes without their defects', async () => {
  const rig = await rigWith()
  const { failure, fetchedBytes } = await fetchAll(rig)
  expect(failure).toBeUndefined()
  expect(fetchedBytes).toBeGreaterThan(0)
})

test.each<[string, (answer: FakeReconstruction) => unknown]>([
  ['is no JSON', () => '<html>'],
  ['is nested', () => '['.repeat(30_000)],
  ['is larger than an answer may be', (answer) => ({ ...answer, more: 'x'.repeat(70_000) })],
  ['is a list', () => []],
  ['begins within a chunk', (answer) => ({ ...answer, offset_into_first_range: 5 })],
  ['has no terms', ({ terms: _, ...answer }) => answer],
  ['has terms that are no list', (answer) => ({ ...answer, terms: { length: 9 } })],
  ['is shorter than the file', (answer) => ({ ...answer, terms: termsOf(answer).slice(1) })],
  ['is longer than the file', (answer) => ({ ...answer, terms: [...termsOf(answer), ...termsOf(answer)] })],
  ['has a negative length', withTerm((term) => ({ ...sizeless(term), unpacked_length: -1 }))],
  ['has a length beyond what can be counted', withTerm((term) => ({ ...sizeless(term), unpacked_length: 2 ** 53 }))],
  [
    'has a length that chunks cannot have',
    withTerm((term) => ({ ...sizeless(term), range: { start: 0, end: 1 }, unpacked_length: 131_073 }))
  ],
  ['has an empty range', withTerm((term) => ({ ...term, range: { start: 3, end: 3 } }))],
  ['names more chunks than a xorb has', withTerm((term) => ({ ...sizeless(term), range: { start: 0, end: 9_000 } }))],
  ['names a xorb by a path', withTerm((term) => ({ ...term, hash: '../../etc' }))],
  ['has sizes of other chunks', withTerm((term) => ({ ...term, chunk_byte_sizes: [1, 2] }))],
  [
    'has sizes that do not add up',
    withTerm((term) => ({ ...term, chunk_byte_sizes: term.chunk_byte_sizes?.map(() => 1) }))
  ],
  ['leads to a file', withUrl('file:///etc/passwd')],
  ['leads to an address with a password', withUrl('http://a:b@127.0.0.4/')],
  ['leads to no address', withUrl('x'.repeat(20_000))],
  ['has a range that ends before it begins', withBytes(10, 9)],
  ['has a range that no xorb has', withBytes(0, 2 ** 40)],
  ['has a range that is no number', withBytes('0', '9')],
  ['signs nothing', withFetches((fetch) => ({ ...fetch, ranges: [] }))],
  ['signs one range twice', withFetches((fetch) => ({ ...fetch, ranges: [...fetch.ranges, ...fetch.ranges] }))]
])('a reconstruction that %s', async (_, edit) => {
  const rig = await rigWith()
  rig.xet.setFaults(({ stage }) => (stage === 'reconstruction' ? { kind: 'edit', edit } : undefined))
  await expectPlain(rig, { requests: 1 + (String(edit).includes('xorbs') ? 1 : 0) })
})

test('two reconstructions that contradict each other', async () => {
  const rig = await rigWith({ isSized: false })
  let count = 0
  // the same chunks, of the length of another file
  const edit = (answer: FakeReconstruction) => ({
    ...answer,
    terms: [
      { hash: 'b'.repeat(64), range: { start: 0, end: 9 }, unpacked_length: count++ === 0 ? BEFORE.length : NOW.length }
    ]
  })
  rig.xet.setFaults(({ stage }) => (stage === 'reconstruction' ? { kind: 'edit', edit } : undefined))
  await expectPlain(rig)
  expect(count).toBe(2)
})

test('a reconstruction that repeats itself forever', async () => {
  const rig = await xetRig(BEFORE, NOW, { isSized: false })
  // 8,000 terms of one byte, each of which overlaps with each
  const edit = (answer: FakeReconstruction) => {
    const size = termsOf(answer).reduce((sum, term) => sum + term.unpacked_length, 0)
    const term = (i: number, unpacked_length: number) => ({
      hash: 'c'.repeat(64),
      range: { start: 0, end: 8_192 - i },
      unpacked_length
    })
    const lengths = Array.from({ length: 8_000 }, (_, i) => (i < 7_999 ? 8_192 : size))
    return { ...answer, terms: lengths.map((length, i) => term(i, length)) }
  }
  rig.xet.setFaults(({ stage }) => (stage === 'reconstruction' ? { kind: 'edit', edit } : undefined))
  await expectPlain(rig)
})

test.each<[string, FakeXetFault, number]>([
  ['refuses the token', { kind: 'status', status: 401 }, 1],
  ['has no such file', { kind: 'status', status: 404 }, 2],
  ['is busy', { kind: 'status', status: 503 }, 3],
  ['leads to itself', { kind: 'status', status: 302, headers: { location: '/v2/reconstructions/again' } }, 1],
  ['leads elsewhere', { kind: 'status', status: 307, headers: { location: 'http://169.254.169.254/latest' } }, 1]
])('a service that %s', async (_, fault, requests) => {
  const rig = await rigWith()
  rig.xet.setFaults(({ stage }) => (stage === 'reconstruction' ? fault : undefined))
  await expectPlain(rig, { requests })
})

test.each([
  ['an address that clouds serve credentials at', 'http://169.254.169.254/xorb'],
  ['the network that is this one', 'http://0.0.0.0:1/xorb']
])('a signed address is dialled under the hub’s policy: %s', async (_, url) => {
  const rig = await rigWith()
  rig.xet.setFaults(({ stage }) => (stage === 'reconstruction' ? { kind: 'edit', edit: withUrl(url) } : undefined))
  await expectPlain(rig)
  expect(
    (await rig.hub.reuse(rig.file, async () => rig.older, { ...rig.sink, ranges: () => [] })).failure
  ).toMatchObject({
    code: 'E_SOURCE_UNAVAILABLE',
    reason: 'refused-redirect'
  })
})

const GOOD = { accessToken: 't', exp: 2 ** 31, casUrl: 'http://127.0.0.3:1' }
test.each<[string, unknown]>([
  ['is no object', []],
  ['names no service', { ...GOOD, casUrl: undefined }],
  ['names a service without HTTP', { ...GOOD, casUrl: 'ftp://127.0.0.3/' }],
  ['names the address of a cloud’s credentials', { ...GOOD, casUrl: 'http://169.254.169.254' }],
  ['has a token of two lines', { ...GOOD, accessToken: 'a\r\nhost: b' }],
  ['has a token without an end', { ...GOOD, accessToken: 'a'.repeat(40_000) }],
  ['has no end of the token', { ...GOOD, exp: 'soon' }]
])('a hub’s answer for a token that %s', async (_, answer) => {
  const rig = await rigWith()
  const fault = { kind: 'status', status: 200, body: JSON.stringify(answer) } as const
  rig.fake.setFaults(scriptedFaults([{ stage: 'xet-token', fault }]))
  await expectPlain(rig, { requests: 0 })
})

test('a hub that cuts off requests for a token', async () => {
  const rig = await rigWith()
  const rule = { stage: 'xet-token', fault: { kind: 'refuse' } } as const
  rig.fake.setFaults(scriptedFaults([rule, rule, rule]))
  const { failure } = await fetchAll(rig)
  expect(failure).toMatchObject({ code: 'E_SOURCE_UNAVAILABLE', reason: 'unreachable' })
  expect(failure!.message).not.toContain('""')
})

const edited = (edit: (bytes: Buffer) => void | Buffer): FakeXetFault => ({
  kind: 'bytes',
  edit: (bytes) => {
    const copy = Buffer.from(bytes)
    return edit(copy) ?? copy
  }
})
const BODIES: readonly [string, FakeXetFault][] = [
  ['is cut', edited((bytes) => bytes.subarray(0, bytes.length - 9))],
  ['is empty', edited(() => Buffer.alloc(0))],
  ['has chunks of another version', edited((bytes) => void bytes.writeUInt8(1, 0))],
  ['has chunks that are packed in no known way', edited((bytes) => void bytes.writeUInt8(3, 4))],
  ['has a chunk without bytes', edited((bytes) => void bytes.writeUIntLE(0, 5, 3))],
  ['has a chunk that is too long', edited((bytes) => void bytes.writeUIntLE(131_073, 5, 3))],
  ['has a chunk of 16 MiB', edited((bytes) => void bytes.writeUIntLE(0xffffff, 1, 3))],
  ['has a plain chunk of two lengths', edited((bytes) => void bytes.writeUInt8(0, 4))],
  ['has a frame that unpacks to more', edited((bytes) => void bytes.writeUIntLE(bytes.readUIntLE(5, 3) - 1, 5, 3))],
  ['has a frame that unpacks to less', edited((bytes) => void bytes.writeUIntLE(bytes.readUIntLE(5, 3) + 1, 5, 3))],
  ['has no frame', edited((bytes) => void bytes.fill(0, 8, 12))],
  ['is all of the xorb', { kind: 'status', status: 200 }],
  [
    'is encoded',
    { kind: 'status', status: 206, headers: { 'content-encoding': 'gzip', 'content-range': 'bytes 0-9/10' } }
  ],
  ['is another range', { kind: 'status', status: 206, headers: { 'content-range': 'bytes 1-9/10' } }],
  ['says no range', { kind: 'status', status: 206 }],
  ['is elsewhere', { kind: 'status', status: 302, headers: { location: 'http://127.0.0.1:1/' } }],
  ['is refused', { kind: 'status', status: 403 }]
]
test.each(BODIES)('a range of a xorb that %s', async (_, fault) => {
  const rig = await rigWith()
  rig.xet.setFaults(({ stage }) => (stage === 'xorb' ? fault : undefined))
  await expectPlain(rig, { requests: 3 + 3 })
})

test.each<[string, (body: string) => string]>([
  ['have another boundary', (body) => body.replaceAll('--part', '--trap')],
  ['are others', (body) => body.replace(/bytes \d+-/g, 'bytes 1-')],
  ['have no heads', (body) => body.replaceAll(/Content-Range[^\r]*/g, 'X: y')],
  ['have endless heads', (body) => body.replace('Content-Range', `${'a: b\r\n'.repeat(5_000)}Content-Range`)],
  ['have an endless line', (body) => `\r\n${'-'.repeat(100_000)}${body}`]
])('several ranges of a xorb that %s', async (_, edit) => {
  const rig = await apartRig({ isJoint: true })
  rig.xet.setFaults(({ stage }) =>
    stage === 'xorb'
      ? { kind: 'bytes', edit: (bytes) => Buffer.from(edit(bytes.toString('latin1')), 'latin1') }
      : undefined
  )
  const { failure } = await fetchAll(rig)
  expect(Buffer.compare(rig.sink.bytes, rig.now)).toBe(0)
  const isJoint = rig.xet.requests.some(({ headers }) => headers.range?.includes(','))
  expect(isJoint).toBe(true)
  expect(failure).toBeInstanceOf(Error)
})
