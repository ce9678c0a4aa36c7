import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { digestFromHex } from '@svc/ref'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type ArtifactState, Artifacts } from '../../src/library/artifacts.ts'
import { ReplacedFiles } from '../../src/library/replace.ts'

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

test('a pinned import adds its hints and overrules nothing else', async () => {
  const gated: ArtifactState = {
    manifestDigest,
    record,
    source: { kind: 'hf', repo: 'Org/Name', revision: 'c'.repeat(40) },
    restricted: true,
    hints: none
  }
  await artifacts.record(gated)
  const peers = ['127.0.0.1:1']
  await artifacts.record({ manifestDigest, source: { kind: 'bt' }, restricted: false, hints: { ...none, peers } })
  expect(await artifacts.read(manifestDigest)).toEqual({ ...gated, hints: { ...none, peers } })
})

test('a later import says whether access was needed, and keeps what a foreign swarm needs', async () => {
  const foreign = { infohash: 'd'.repeat(40) }
  await artifacts.record({
    manifestDigest,
    record,
    source: { kind: 'catalog', foreign },
    restricted: true,
    hints: none
  })
  await artifacts.record({
    manifestDigest,
    record,
    source: { kind: 'hf', repo: 'Org/Name' },
    restricted: false,
    hints: none
  })
  expect(await artifacts.read(manifestDigest)).toMatchObject({
    source: { kind: 'hf', repo: 'Org/Name', foreign },
    restricted: false
  })
})

test('stored hints that nobody can use are left out', async () => {
  const peers = ['a\0b:1', '127.0.0.1:1']
  await artifacts.record({ manifestDigest, source: { kind: 'bt' }, restricted: false, hints: { ...none, peers } })
  expect((await artifacts.read(manifestDigest))?.hints).toEqual({ ...none, peers: ['127.0.0.1:1'] })
})
