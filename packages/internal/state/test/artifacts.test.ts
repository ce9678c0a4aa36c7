import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { timestampOf } from '@svc/internal-clock'
import { digestFromHex } from '@svc/ref'
import { VirtualClock } from '@svc/testkit/virtual-clock'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { modifiedAt } from '../src/artifact-record.ts'
import { type ArtifactImport, Artifacts } from '../src/artifacts.ts'
import { decided } from '../src/provenance.ts'
import { ReplacedFiles } from '../src/replace.ts'

const manifestDigest = digestFromHex('a'.repeat(64))
const record = digestFromHex('b'.repeat(64))
const none = { trackers: [], webseeds: [], peers: [] }
let root: string
let artifacts: Artifacts

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'svc-artifacts-'))
  artifacts = new Artifacts(root, await ReplacedFiles.open(join(root, 'state')))
})
afterEach(() => rm(root, { recursive: true, force: true }))

test('a pinned import adds its hints and changes nothing else', async () => {
  const gated: ArtifactImport = {
    manifestDigest,
    record,
    source: { kind: 'hf', repo: 'Org/Name', revision: 'c'.repeat(40) },
    provenance: { access: 'restricted', by: 'hub-token' },
    hints: none
  }
  await artifacts.record(gated)
  const peers = ['127.0.0.1:1']
  await artifacts.record({
    manifestDigest,
    source: { kind: 'bt' },
    provenance: { access: 'public' },
    hints: { ...none, peers }
  })
  expect(await artifacts.read(manifestDigest)).toMatchObject({ ...gated, hints: { ...none, peers } })
})

test('the time for mirrors is when an import began; an import is as old as its end', async () => {
  const clock = new VirtualClock()
  const timed = new Artifacts(root, await ReplacedFiles.open(join(root, 'state')), clock)
  const timeOf = async () => modifiedAt((await timed.read(manifestDigest))!)
  const pinned: ArtifactImport = {
    manifestDigest,
    source: { kind: 'bt' },
    provenance: { access: 'public' },
    hints: none,
    futureName: 'acme/model'
  }
  await timed.record(pinned)
  const began = await timeOf()
  await clock.advance(3600_000)
  await timed.record(pinned)
  await timed.complete(manifestDigest)
  await timed.record({ ...pinned, record })
  expect(await timeOf()).toBe(began)
  expect((await timed.read(manifestDigest))?.importedAt).toBe(timestampOf(clock))
  await timed.endFutureName(manifestDigest, 'acme/model')
  await timed.record({ ...pinned, record })
  expect(await timeOf()).not.toBe(began)
  const beganAt = '2020-01-01T00:00:00.000Z'
  await timed.record({ ...pinned, source: { kind: 'local' }, beganAt })
  expect(await timeOf()).toBe(beganAt)
  expect((await timed.read(manifestDigest))?.importedAt).toBe(timestampOf(clock))
})

test('the hub’s confirmation that a model is public applies to unknown access', async () => {
  const of = (access: 'unknown' | 'restricted'): ArtifactImport => ({
    manifestDigest,
    source: { kind: 'hf', repo: 'Org/Name', revision: 'c'.repeat(40) },
    provenance: { access },
    hints: none
  })
  await artifacts.record(of('restricted'))
  await artifacts.confirmPublic(manifestDigest)
  expect(await artifacts.read(manifestDigest)).toMatchObject({ provenance: { access: 'restricted' } })
  await artifacts.forget(manifestDigest)
  await artifacts.record(of('unknown'))
  await artifacts.confirmPublic(manifestDigest)
  expect(await artifacts.read(manifestDigest)).toMatchObject({ provenance: { access: 'public' } })
})

test('a later import decides whether access was needed, and keeps the data for a BitTorrent v1 swarm', async () => {
  const bittorrentV1 = { infohash: 'd'.repeat(40) }
  await artifacts.record({
    manifestDigest,
    record,
    source: { kind: 'catalog', bittorrentV1 },
    provenance: { access: 'restricted', by: 'hub-token' },
    hints: none
  })
  await artifacts.record({
    manifestDigest,
    record,
    source: { kind: 'hf', repo: 'Org/Name' },
    provenance: { access: 'public', confirmedPublicAt: '2026-01-01T00:00:00.000Z' },
    hints: none
  })
  expect(await artifacts.read(manifestDigest)).toMatchObject({
    source: { kind: 'hf', repo: 'Org/Name', bittorrentV1 },
    provenance: { access: 'public', confirmedPublicAt: '2026-01-01T00:00:00.000Z' }
  })
})

test('private and pinned stay until the owner changes them', async () => {
  const plain = { manifestDigest, source: { kind: 'local' }, provenance: { access: 'own' }, hints: none } as const
  await artifacts.record({ ...plain, provenance: { access: 'own', decision: decided('private') } })
  await artifacts.record({ ...plain, source: { kind: 'bt' }, pinned: true })
  await artifacts.record(plain)
  const state = await artifacts.read(manifestDigest)
  expect(state).toMatchObject({ provenance: { decision: { is: 'private' } }, pinned: true, source: { kind: 'local' } })
  expect(Date.parse(state!.importedAt!)).toBeGreaterThan(Date.parse('2020-01-01'))
  expect(await artifacts.setPrivate(manifestDigest, false)).toMatchObject({
    provenance: { decision: { is: 'shared' } },
    pinned: true
  })
  expect(await artifacts.releasePin(manifestDigest)).toBe(true)
  expect(await artifacts.releasePin(manifestDigest)).toBe(false)
  expect(await artifacts.read(manifestDigest)).toMatchObject({
    provenance: { decision: { is: 'shared' } },
    pinned: false
  })
  await artifacts.forget(manifestDigest)
  await artifacts.forget(manifestDigest)
  expect(await artifacts.read(manifestDigest)).toBeUndefined()
})

test('unusable stored hints are ignored', async () => {
  const peers = ['a\0b:1', '127.0.0.1:1']
  await artifacts.record({
    manifestDigest,
    source: { kind: 'bt' },
    provenance: { access: 'public' },
    hints: { ...none, peers }
  })
  expect((await artifacts.read(manifestDigest))?.hints).toEqual({ ...none, peers: ['127.0.0.1:1'] })
})

test('a pending name is kept until the artifact gets it, is completed otherwise, or the name is withdrawn', async () => {
  const other = digestFromHex('e'.repeat(64))
  const bt = { manifestDigest, source: { kind: 'bt' }, provenance: { access: 'public' }, hints: none } as const
  const nameOf = async () => (await artifacts.read(manifestDigest))?.futureName
  await artifacts.record({ ...bt, futureName: 'a/x' })
  await artifacts.record({ ...bt, manifestDigest: other, futureName: 'a/x' })
  const again = new Artifacts(root, await ReplacedFiles.open(join(root, 'state')))
  for (const each of [artifacts, again]) expect(await each.toBeNamed('a/x')).toEqual([manifestDigest, other])
  expect(await artifacts.toBeNamed('a/y')).toEqual([])
  // the steps of its own import keep the pending name
  await artifacts.complete(manifestDigest)
  await artifacts.record({ ...bt, record })
  await artifacts.endFutureName(manifestDigest, 'a/y')
  expect([await nameOf(), await artifacts.toBeNamed('a/x')]).toEqual(['a/x', [manifestDigest, other]])
  await artifacts.endFutureName(manifestDigest, 'a/x')
  expect([await nameOf(), await artifacts.toBeNamed('a/x')]).toEqual([undefined, [other]])
  // a complete artifact needs no pending name
  await artifacts.record({ ...bt, futureName: 'a/z' })
  expect([await nameOf(), await artifacts.toBeNamed('a/z')]).toEqual([undefined, []])
  await artifacts.record({ ...bt, manifestDigest: other, source: { kind: 'local' } })
  expect(await artifacts.toBeNamed('a/x')).toEqual([])
  await artifacts.record({ ...bt, manifestDigest: record, futureName: 'a/x' })
  await artifacts.forget(record)
  expect(await artifacts.toBeNamed('a/x')).toEqual([])
})

test('only changes of access count as access changes', async () => {
  const bt = { manifestDigest, source: { kind: 'bt' }, provenance: { access: 'public' }, hints: none } as const
  const counts: number[] = []
  const count = () => counts.push(artifacts.shownChanges)
  await artifacts.record(bt)
  count()
  await artifacts.record({ ...bt, record, futureName: 'a/x' })
  count()
  await artifacts.complete(manifestDigest)
  count()
  await artifacts.setPrivate(manifestDigest, true)
  count()
  await artifacts.setPrivate(manifestDigest, true)
  count()
  expect(counts).toEqual([1, 1, 2, 3, 3])
})

test('companions that were withheld are dropped when an import makes their artifact public', async () => {
  const [secret, open] = ['1', '2'].map((digit) => digestFromHex(digit.repeat(64))) as [typeof record, typeof record]
  const of = (access: 'restricted' | 'own', name: string, digest: typeof record): ArtifactImport => ({
    manifestDigest,
    source: { kind: access === 'own' ? 'local' : 'oci' },
    provenance: { access },
    hints: none,
    companions: { [name]: digest }
  })
  const companions = async () => (await artifacts.read(manifestDigest))?.companions
  await artifacts.record(of('restricted', 'their/model', secret))
  await artifacts.record(of('restricted', 'their/other', open))
  expect(await companions()).toEqual({ 'their/model': secret, 'their/other': open })
  await artifacts.record(of('own', 'my/model', open))
  // a companion that this source gives as well stays under every name
  expect(await companions()).toEqual({ 'their/other': open, 'my/model': open })
  await artifacts.record(of('own', 'my/second', secret))
  expect(await companions()).toEqual({ 'their/other': open, 'my/model': open, 'my/second': secret })
})
