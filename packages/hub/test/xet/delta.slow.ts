import { expect, test } from 'vitest'
import { closeAfterTests } from '../fixtures.ts'
import {
  apartRig,
  closeXetAfterTests,
  fetchAll,
  MIB,
  modelOf,
  plainBytes,
  weights,
  withInsertion,
  type XetRig,
  xetRig
} from './fixtures.ts'

closeXetAfterTests()
closeAfterTests()

const stagesOf = ({ xet }: XetRig): string[] => xet.requests.map(({ stage }) => stage)

test('an insertion into 16 MiB is fetched without the rest', async () => {
  const before = modelOf(15 * MIB)
  const now = withInsertion(before)
  const rig = await xetRig(before, now)
  const outcome = await fetchAll(rig)
  expect(Buffer.compare(rig.sink.bytes, now)).toBe(0)
  expect(outcome.failure).toBeUndefined()
  expect(outcome.copiedBytes).toBeGreaterThan(now.length - MIB)
  expect(rig.xet.socketBytes() + plainBytes(rig)).toBeLessThan(MIB)
})

test.each([
  ['version 1', { version: 1 as const }],
  ['plain chunks', { packing: () => 'plain' as const }],
  ['chunks grouped by 4', { packing: () => 'grouped' as const }]
])('missing chunks are fetched as the service stores them: %s', async (_, options) => {
  const before = modelOf(2 * MIB)
  // two places that can be compressed, in one new xorb
  const tail = Buffer.from('a tail of a tensor, again and again '.repeat(9_000))
  const now = Buffer.concat([withInsertion(before).subarray(0, 2 * MIB), tail, weights(MIB, 7), tail])
  const rig = await xetRig(before, now, options)
  const outcome = await fetchAll(rig)
  expect(Buffer.compare(rig.sink.bytes, now)).toBe(0)
  expect(outcome.failure).toBeUndefined()
  expect(outcome.copiedBytes).toBeGreaterThan(MIB)
  expect(outcome.fetchedBytes > 0).toBe(!('packing' in options) || options.packing() !== 'plain')
})

test.each([[true], [false]])('separate parts of a xorb at one address: %s', async (isJoint) => {
  const rig = await apartRig({ isJoint })
  const { failure, fetchedBytes } = await fetchAll(rig)
  expect(failure).toBeUndefined()
  expect(Buffer.compare(rig.sink.bytes, rig.now)).toBe(0)
  expect(fetchedBytes).toBeGreaterThan(0)
  const ranges = rig.xet.requests.filter(({ stage }) => stage === 'xorb').map(({ headers }) => headers.range)
  expect(ranges.some((range) => range!.includes(','))).toBe(isJoint)
  expect(plainBytes(rig)).toBeLessThan(MIB / 2)
})

test('chunks are fetched only where they cost less than plain bytes', async () => {
  const before = weights(2 * MIB, 1)
  const now = Buffer.concat([weights(MIB, 9), before])
  const rig = await xetRig(before, now)
  expect(await fetchAll(rig)).toMatchObject({ fetchedBytes: 0 })
  expect(Buffer.compare(rig.sink.bytes, now)).toBe(0)
  expect(plainBytes(rig)).toBeLessThan(1.3 * MIB)
})

test.each([[true], [false]])('several changes in one xorb, with known chunk lengths: %s', async (isSized) => {
  const before = weights(4 * MIB, 1)
  const now = Buffer.concat([
    weights(9_024, 2),
    before.subarray(0, 2 * MIB),
    weights(9_024, 3),
    before.subarray(2 * MIB)
  ])
  const cut = now.subarray(0, now.length - MIB / 2)
  const rig = await xetRig(before, cut, { isSized })
  const { copiedBytes, failure } = await fetchAll(rig)
  expect(failure).toBeUndefined()
  expect(Buffer.compare(rig.sink.bytes, cut)).toBe(0)
  // without them, nobody knows where the middle lies in the older file
  if (isSized) expect(copiedBytes).toBeGreaterThan(3 * MIB)
  else expect(copiedBytes).toBeLessThan(2 * MIB)
})

test('different weights of the same shape: nothing is saved, and little is requested', async () => {
  const rig = await xetRig(modelOf(2 * MIB, 1), modelOf(2 * MIB, 2))
  const { copiedBytes } = await fetchAll(rig)
  // the header
  expect(copiedBytes).toBeLessThan(MIB / 4)
  expect(stagesOf(rig).filter((stage) => stage === 'reconstruction')).toHaveLength(2)
  expect(rig.fake.requests.filter(({ stage }) => stage === 'xet-token')).toHaveLength(1)
  expect(plainBytes(rig)).toBeGreaterThan(2 * MIB - MIB / 4)
})

test('an interrupted delta resumes with the missing chunks', async () => {
  const before = modelOf(6 * MIB)
  const now = withInsertion(before)
  const rig = await xetRig(before, now)
  const stop = new AbortController()
  const reason = new Error('enough')
  const reading = rig.hub.reuse(rig.file, async () => rig.older, rig.sink, {
    signal: stop.signal,
    onProgress: (bytesDone) => bytesDone > 2 * MIB && stop.abort(reason)
  })
  await expect(reading).rejects.toBe(reason)
  const held = rig.sink.ranges().reduce((sum, [start, end]) => sum + end - start, 0)
  expect(held).toBeGreaterThan(2 * MIB)
  const outcome = await fetchAll(rig)
  expect(outcome.copiedBytes).toBeLessThan(now.length - held)
  expect(Buffer.compare(rig.sink.bytes, now)).toBe(0)
})

test('without chunk hashes nothing is requested', async () => {
  const before = modelOf(2 * MIB)
  const rig = await xetRig(before, withInsertion(before))
  const { xetHash: _, ...file } = rig.file
  expect(await rig.hub.reuse(file, async () => rig.older, rig.sink)).toEqual({ copiedBytes: 0, fetchedBytes: 0 })
  expect(rig.xet.requests).toEqual([])
})

test('only the hub gets the hub token, the service gets its own, signed addresses get none', async () => {
  const before = modelOf(2 * MIB)
  const rig = await xetRig(before, withInsertion(before), {}, { token: 'hf_t' })
  expect((await fetchAll(rig)).failure).toBeUndefined()
  const sent = (stage: string) =>
    rig.xet.requests.filter((one) => one.stage === stage).map(({ headers }) => headers.authorization)
  expect(new Set(sent('reconstruction'))).toEqual(new Set([`Bearer ${rig.xet.token}`]))
  expect(new Set(sent('xorb'))).toEqual(new Set([undefined]))
  const asked = rig.fake.requests.find(({ stage }) => stage === 'xet-token')
  expect(asked?.headers.authorization).toBe('Bearer hf_t')
})

test("a sink's error is passed on; an error in the older version is survived", async () => {
  const before = modelOf(2 * MIB)
  const now = withInsertion(before)
  const rig = await xetRig(before, now)
  const failure = new Error('the disk is full')
  const sink = { ...rig.sink, write: () => Promise.reject(failure) }
  await expect(rig.hub.reuse(rig.file, async () => rig.older, sink)).rejects.toBe(failure)
  const cause = new Error('EIO')
  const unreadable = { ...rig.older, read: () => Promise.reject(cause) }
  const outcome = await rig.hub.reuse(rig.file, async () => unreadable, rig.sink)
  expect(outcome).toMatchObject({ copiedBytes: 0, failure: { cause } })
})
