// Who gets a model, through which door, and why; and a withheld model stays marked wherever it goes.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { WhyResult } from '@svc/client'
import { makeGguf } from '@svc/testkit/models'
import { expect, it, vi } from 'vitest'
import { ok, type TestDaemon, testDaemon } from './support.ts'
import { COMMIT, putHub } from './tool-caches.ts'

vi.setConfig({ testTimeout: 60_000 })

const REF = 'me/model:q8_0'
const DOORS = ['swarm', 'webseed', 'hub-mirror', 'oci-mirror', 's3-mirror', 'publish', 'export', 'push']

async function imported(...options: string[]): Promise<TestDaemon> {
  const daemon = await testDaemon()
  const path = join(daemon.folder, 'model-q8_0.gguf')
  writeFileSync(path, makeGguf({ seed: 11 }))
  await ok(daemon, 'import', 'local', path, '--as', 'me/model', ...options)
  return daemon
}

async function why(daemon: TestDaemon, ref = REF): Promise<WhyResult> {
  const { models } = JSON.parse(await ok(daemon, 'why', ref, '--json')) as { models: WhyResult[] }
  expect(models).toHaveLength(1)
  return models[0]!
}

const factsOf = ({ doors }: WhyResult): (string | undefined)[] => [
  ...new Set(doors.map(({ withheld }) => withheld?.fact))
]

it("shows each door, the origin and the owner's decision", async () => {
  const daemon = await imported()
  const open = await why(daemon)
  expect(open).toMatchObject({ record: 'present', source: { kind: 'local' }, access: 'own' })
  expect(open.doors.map(({ door }) => door)).toEqual(DOORS)
  expect([factsOf(open), open.doors.every(({ given }) => given)]).toEqual([[undefined], true])
  // the daemon of this test has no swarm and no mirrors
  expect(open.doors.filter((door) => door.open).map(({ door }) => door)).toEqual(['publish', 'export', 'push'])
  await ok(daemon, 'private', REF)
  const kept = await why(daemon, 'me/model')
  expect(kept).toMatchObject({ decision: { is: 'private', at: expect.any(String) } })
  expect(factsOf(kept)).toEqual(['private'])
  const text = await ok(daemon, 'why', 'me/model')
  for (const name of [REF, ...DOORS]) expect(text).toContain(name)
})

it('explains a damaged or missing record, whose model is withheld', async () => {
  const daemon = await imported()
  const { manifestDigest } = await why(daemon)
  const file = join(daemon.root, 'state/artifacts', `${manifestDigest.slice('sha256:'.length)}.json`)
  writeFileSync(file, readFileSync(file, 'utf8').replace('"own"', '"owm"'))
  const damaged = await why(daemon)
  expect([damaged.record, factsOf(damaged)]).toEqual(['damaged', ['damaged-record']])
  const absent = await why(daemon, `svc:///by/digest@sha256:${'0'.repeat(64)}`)
  expect([absent.record, factsOf(absent)]).toEqual(['absent', ['no-record']])
  expect(await daemon.svc('export', 'oci', REF, join(daemon.folder, 'out'))).toMatchObject({ code: 2 })
})

it('adopt reports withheld models with the reason', async () => {
  const daemon = await testDaemon()
  const root = join(daemon.folder, 'hub')
  putHub(root, 'Acme/Tiny-GGUF', { 'tiny-q8_0.gguf': makeGguf({ seed: 12 }) })
  const { models } = JSON.parse(await ok(daemon, 'adopt', root, '--share', '--json'))
  expect(models).toMatchObject([{ withheld: [{ ref: 'acme/tiny-gguf:q8_0', fact: 'unknown-access' }] }])
  expect(await why(daemon, 'acme/tiny-gguf:q8_0')).toMatchObject({
    source: { kind: 'hf', repo: 'Acme/Tiny-GGUF', revision: COMMIT }
  })
  await ok(daemon, 'private', 'acme/tiny-gguf:q8_0', '--off')
  expect(factsOf(await why(daemon, 'acme/tiny-gguf:q8_0'))).toEqual([undefined])
})

it.each(['a folder', 'an archive'])(
  'an exported withheld model stays withheld, as %s of its owner only',
  async (kind) => {
    const from = await imported('--private')
    const { manifestDigest } = await why(from)
    const place = join(from.folder, kind === 'a folder' ? 'out' : 'out.tar')
    expect(await from.svc('export', 'oci', REF, place)).toMatchObject({ code: 2 })
    await ok(from, 'export', 'oci', REF, place, '--withheld')
    expect(statSync(place).mode & 0o777).toBe(kind === 'a folder' ? 0o700 : 0o600)
    if (kind === 'a folder')
      for (const name of readdirSync(join(place, 'blobs/sha256')))
        expect(statSync(join(place, 'blobs/sha256', name)).mode & 0o777).toBe(0o600)
    const to = await testDaemon()
    await ok(to, 'import', 'oci', place, '--as', 'me/model')
    const there = await why(to)
    // the mark is in no document of the model
    expect([there.manifestDigest, there.marked, factsOf(there)]).toEqual([manifestDigest, true, ['marked']])
    await to.pause()
    await to.resume()
    expect(factsOf(await why(to))).toEqual(['marked'])
    await ok(to, 'private', REF, '--off')
    expect(factsOf(await why(to))).toEqual([undefined])
  }
)

it('a publication of a withheld model says so in its index and its command', async () => {
  const from = await imported('--private')
  const place = join(from.folder, 'site')
  const { models } = JSON.parse(await ok(from, 'publish', REF, place, '--withheld', '--json'))
  expect(models[0].command.split(' ')).toContain('--private')
  const listing = JSON.parse(readFileSync(join(place, 'index.json'), 'utf8'))
  expect(listing.models).toMatchObject([{ ref: REF, withheld: true }])
})
