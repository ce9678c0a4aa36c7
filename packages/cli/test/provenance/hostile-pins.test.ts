// A pinned manifest of a stranger's calls bytes that are here whatever it likes: none of them leaves, by any door (spec add.37).
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Job } from '@svc/client'
import { type FakeBucket, startFakeBucket } from '@svc/testkit/fake-bucket'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { seededBytes } from '@svc/testkit/models'
import { until } from '@svc/testkit/until'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type ClaimedFile, type HostilePin, hostilePin } from '../../../daemon/test/support/hostile-pins.ts'
import { laterUndo } from '../support.ts'
import { Gate } from './gate.ts'

vi.setConfig({ testTimeout: 60_000 })
const undo = laterUndo()
const TOKEN = 'token-of-the-owner'
const COMPANION = 'generation_config.json'
const gguf = (seed: number, sizeBytes = 70_000): Buffer =>
  Buffer.concat([Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1'), seededBytes(sizeBytes - 24, seed)])

let folder: string
let gate: Gate
let hub: FakeHub
let bucket: FakeBucket
/** Bytes that nobody may have, by what they are. */
const secrets = new Map<string, Buffer>()
let pins = 0

const hexOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')

function folderOf(name: string, files: Readonly<Record<string, Buffer>>): string {
  const at = join(folder, name)
  mkdirSync(at, { recursive: true })
  for (const [path, bytes] of Object.entries(files)) writeFileSync(join(at, path), bytes)
  return at
}

beforeAll(async () => {
  folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'svc-pins-'))
  undo.later(() => rmSync(folder, { recursive: true, force: true }))
  hub = await startFakeHub({ tokens: [TOKEN] })
  undo.later(() => hub.close())
  bucket = await startFakeBucket(folder)
  undo.later(() => bucket.close())
  const file = {
    hub: { endpoint: hub.endpoint },
    swarm: { seed_on_import: true, fill_timeout: 1 },
    mirror: { on_demand: true, on_demand_allow: ['me/*'] }
  }
  gate = await Gate.start(join(folder, 'gate'), { file, hubToken: TOKEN })
  undo.later(() => gate.close())
  const local = (name: string, files: Readonly<Record<string, Buffer>>, isPrivate: boolean): Promise<Job> =>
    gate.done(gate.client.importLocal({ paths: [folderOf(name, files)], as: `me/${name}`, private: isPrivate }))

  secrets.set('private weights', gguf(1, 3_200_000))
  secrets.set('a private companion', Buffer.from('{"temperature":0.123}'))
  const held = { 'm-q8_0.gguf': secrets.get('private weights')!, [COMPANION]: secrets.get('a private companion')! }
  const { result } = await local('private', held, true)
  const [document] = result!.manifests
  const chunks = (await gate.client.readBlob(document!)).body
  secrets.set('the manifest of a private model', Buffer.concat(await chunks.toArray()))

  secrets.set('notes beside a shared model', Buffer.from('a diary'))
  await local('shared', { 'm-q8_0.gguf': gguf(2), 'notes.txt': secrets.get('notes beside a shared model')! }, false)

  secrets.set('gated weights', gguf(3))
  secrets.set('a gated companion', Buffer.from('{"temperature":0.456}'))
  hub.commit({
    id: 'Acme/Gated',
    gated: 'manual',
    files: [
      { path: 'm-q8_0.gguf', content: secrets.get('gated weights')!, lfs: true },
      { path: COMPANION, content: secrets.get('a gated companion')!, lfs: true }
    ]
  })
  await gate.done(gate.client.importHf({ repo: 'Acme/Gated' }))

  secrets.set('a removed private model', gguf(4))
  await local('removed', { 'm-q8_0.gguf': secrets.get('a removed private model')! }, true)
  await gate.client.removeModel({ ns: 'me', name: 'removed', quant: 'q8_0' })
})
afterAll(undo.all)

async function importPin(pin: HostilePin, as: string): Promise<Job> {
  const { manifestDigest, infohash, content } = pin
  const part = `open/${++pins}`
  for (const [path, bytes] of content) {
    mkdirSync(dirname(join(folder, part, path)), { recursive: true })
    writeFileSync(join(folder, part, path), bytes)
  }
  const body = { infohash, manifestDigest, webseeds: [`${bucket.url}${part}/`], as }
  return gate.client.waitJob(await gate.client.importBt(body), { intervalMs: 1 })
}

/** All doors, under the name that the pin was imported as. */
async function expectNothing(pin: HostilePin, name: string, file: ClaimedFile): Promise<void> {
  const bytes = Buffer.from(file.bytes)
  const [ref, path] = [`${name}:q8_0`, file.name]
  const s3 = await gate.ask('s3', `/models/${name}/q8_0/${path}`)
  const oci = await gate.ask('oci', `/v2/${name}/manifests/q8_0`)
  const blob = await gate.ask('oci', `/v2/${name}/blobs/sha256:${hexOf(bytes)}`)
  const webseed = await gate.ask('webseed', `/${pin.torrent.name}/${path}`)
  const hubs = await gate.ask('hub', `/Acme/Claimed/resolve/main/${path}`)
  expect({ s3, oci, blob, webseed, hubs }).toEqual({ s3: 404, oci: 404, blob: 404, webseed: 404, hubs: 404 })
  const { swarm } = await gate.client.status()
  expect(swarm.torrents.map(({ manifestDigest }) => manifestDigest)).not.toContain(pin.manifestDigest)
  const out = join(folder, `out-${pins}`)
  for (const words of [
    ['export', 'oci', ref, out],
    ['publish', ref, out],
    ['push', ref, '127.0.0.1:1/none/none:latest']
  ])
    await expect(gate.svc(...words)).rejects.toThrow()
  const left = existsSync(out) ? readdirSync(out, { recursive: true, withFileTypes: true }) : []
  for (const each of left.filter((entry) => entry.isFile()))
    expect(readFileSync(join(each.parentPath, each.name)).includes(bytes)).toBe(false)
}

const KINDS: readonly Omit<ClaimedFile, 'bytes'>[] = [
  { kind: 'code', name: 'modeling_x.py', role: 'model' },
  { kind: 'chat-template', name: 'chat_template.jinja' },
  { kind: 'weights.aux', name: 'imatrix.dat', role: 'imatrix' },
  { kind: 'weights.gguf', name: 'x-q8_0.gguf' },
  { kind: 'weights.safetensors', name: 'x.safetensors' },
  { kind: 'tokenizer', name: 'tokenizer.tar' },
  { kind: 'adapter', name: 'adapter.tar' }
]
const ANNOTATIONS = { 'svc.hf.repo': 'Acme/Claimed', 'svc.hf.revision': 'a'.repeat(40) }

test.each(KINDS)('what is here leaves as no $kind, with the right merkle root or another', async (kind) => {
  for (const [what, bytes] of secrets) {
    const file = { ...kind, bytes }
    const more = { annotations: ANNOTATIONS, label: `${pins}` }
    const name = `evil/${kind.kind.replace('.', '-')}-${pins}`
    const lying = hostilePin([{ ...file, rootOf: randomBytes(bytes.length) }], more)
    expect([what, (await importPin(lying, name)).error?.code]).toEqual([what, 'E_NOT_IMPORTABLE'])
    await expectNothing(lying, name, file)
    const honest = hostilePin([file], more)
    expect([what, (await importPin(honest, name)).state]).toEqual([what, 'done'])
    expect([what, (await gate.client.why(`svc:///${name}:q8_0`)).unproven]).toEqual([what, [kind.name]])
    await expectNothing(honest, name, file)
  }
})

test('a pin all of whose files are here is refused for another merkle root', async () => {
  const file: ClaimedFile = { kind: 'code', name: 'modeling_x.py', role: 'model', bytes: secrets.get('gated weights')! }
  const label = 'whole'
  expect((await importPin(hostilePin([file], { label }), 'evil/whole')).state).toBe('done')
  const lying = hostilePin([{ ...file, rootOf: randomBytes(file.bytes.length) }], { label })
  expect((await importPin(lying, 'evil/lying')).error?.code).toBe('E_NOT_IMPORTABLE')
  await expectNothing(lying, 'evil/lying', file)
})

test('a pin whose configuration is other bytes does not hide the model that has the name', async () => {
  const config: ClaimedFile = { kind: 'config', name: 'modelconfig.json', bytes: gguf(2) }
  const pin = hostilePin([config, { kind: 'code', name: 'modeling_x.py', role: 'model', bytes: Buffer.from('absent') }])
  expect((await importPin(pin, 'me/shared')).error?.code).toBe('E_SOURCE_UNAVAILABLE')
  const blob = `sha256:${hexOf(gguf(2))}`
  expect(await gate.ask('oci', `/v2/me/shared/blobs/${blob}`)).toBe(200)
  expect(await gate.ask('oci', `/v2/me/shared/blobs/sha256:${'0'.repeat(64)}`)).toBe(404)
  expect(await gate.ask('s3', '/models/me/shared/q8_0/m-q8_0.gguf')).toBe(200)
})

test('a start seeds no pin whose bytes came by another import before it was complete', async () => {
  const bytes = gguf(6)
  const file: ClaimedFile = { kind: 'tokenizer', name: 'tokenizer.tar', bytes }
  const pin = hostilePin([file], { label: 'started' })
  const { content, infohash, manifestDigest } = pin
  for (const [path, part] of content) {
    mkdirSync(dirname(join(folder, 'open/started', path)), { recursive: true })
    writeFileSync(join(folder, 'open/started', path), part)
  }
  const body = { infohash, manifestDigest, webseeds: [`${bucket.url}open/started/`] }
  const job = await gate.client.waitJob(await gate.client.importBt(body), { intervalMs: 1 })
  expect(job.error?.code).toBe('E_SOURCE_UNAVAILABLE')
  const paths = [folderOf('started-own', { 'm-q8_0.gguf': bytes })]
  await gate.done(gate.client.importLocal({ paths, as: 'me/started', private: true }))
  await gate.restart()
  // what the start seeds is seeded
  let { swarm } = await gate.client.status()
  await until(
    () => swarm.seeding > 0 && swarm.verifying === undefined,
    async () => {
      swarm = (await gate.client.status()).swarm
    }
  )
  const path = `/${pin.torrent.name}/${file.name}`
  expect(await gate.ask('webseed', path)).toBe(404)
  const ref = `svc:///pinned/model@${manifestDigest}`
  await gate.done(gate.client.ensure({ ref }))
  expect((await gate.client.why(ref)).unproven).toEqual([file.name])
  expect(await gate.ask('webseed', path)).toBe(404)
})

test('an eviction does not complete a pin whose bytes came by another import', async () => {
  const bytes = gguf(5)
  const file: ClaimedFile = { kind: 'weights.gguf', name: 'x-q8_0.gguf', bytes }
  const pin = hostilePin([file], { label: 'evicted' })
  expect((await importPin(pin, 'evil/evicted')).error?.code).toBe('E_SOURCE_UNAVAILABLE')
  const paths = [folderOf('later', { 'm-q8_0.gguf': bytes })]
  await gate.done(gate.client.importLocal({ paths, as: 'me/later', private: true }))
  const ref = `svc:///evil/evicted@${pin.manifestDigest}`
  await gate.client.waitJob(await gate.client.evict({ ref, force: true }), { intervalMs: 1 })
  await gate.client.waitJob(await gate.client.ensure({ ref }), { intervalMs: 1 })
  await expectNothing(pin, 'evil/evicted', file)
  // nor does it vouch for them
  const another = hostilePin([file], { label: 'another' })
  expect((await importPin(another, 'evil/another')).state).toBe('done')
  await expectNothing(another, 'evil/another', file)
})
