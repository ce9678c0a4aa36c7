// While the owner imports a model from the hub, the mirrors list its files, and each read waits for the SHA-256 of its file.
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { ImportHfBody, Job } from '@svc/client/protocol'
import { parseDigest } from '@svc/ref'
import type { FakeHub, FakeRepo } from '@svc/testkit/fake-hub'
import { expect, test, vi } from 'vitest'
import type { ArtifactState } from '../../../internal/state/src/artifacts.ts'
import type { DaemonContext } from '../../src/app/compose.ts'
import {
  bigRepo,
  fakeHub,
  finished,
  MIT,
  type Rig,
  type RigOptions,
  rigOf,
  safetensors,
  tempFolder,
  undoAfterTests,
  writeRepo
} from '../sources/hub/fixtures.ts'
import { gguf } from '../support/models.ts'
import { FOLDER as SIGNED, signerIn } from '../support/signed-models.ts'
import { digestOf as sha256Of } from './arriving.ts'
import { askS3, type S3Answer, type S3Ask, s3Of } from './s3-client.ts'

vi.setConfig({ testTimeout: 60_000 })
undoAfterTests()

const ANY = '127.0.0.1:0'
const WEIGHTS = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'] as const
const bytesOf = WEIGHTS.map((_, i) => Buffer.from(safetensors('BF16', 600_000, i + 1)))
const MODEL: FakeRepo = {
  id: 'Acme/M',
  files: [
    ...WEIGHTS.map((path, i) => ({ path, content: bytesOf[i]! })),
    { path: 'model.safetensors.index.json', content: Buffer.from('{"weight_map":{}}') },
    { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') },
    { path: 'generation_config.json', content: Buffer.from('{}') },
    { path: 'tokenizer.json', content: { seed: 3, sizeBytes: 40_000 }, lfs: true },
    { path: 'tokenizer_config.json', content: Buffer.from('{}') },
    { path: 'LICENSE', content: Buffer.from(MIT) }
  ]
}
const FOLDER = '/models/acme/m/bf16'
const LIST = '/models?list-type=2&prefix=acme/m/'
const LOOK_BYTES = 1_000_000
const digestOf = (bytes: Buffer) => parseDigest(sha256Of(bytes))
const isWeights = (path: string): boolean => /\.(?:safetensors|gguf)$/.test(path)

interface World {
  readonly rig: Rig
  readonly fake: FakeHub
  readonly ask: (path: string, asked?: S3Ask) => Promise<S3Answer>
  readonly askHub: World['ask']
  /** Sends only files that `may` allows, and the headers of weights. */
  open(may: (path: string) => boolean): void
}

/** A hub that holds its files back, and a daemon with mirrors. */
async function world(options: RigOptions = {}, more = {}, repos: readonly FakeRepo[] = [MODEL]): Promise<World> {
  const fake = await fakeHub({ repos: [...repos], tokens: ['good'] })
  let opened = Promise.withResolvers<void>()
  let may = (_path: string): boolean => false
  fake.setFaults(({ stage, path = '', headers: { range = '' } }) => {
    if (stage !== 'cdn' && stage !== 'resolve') return undefined
    // downloads request weights by the MiB; reads of a header or of the repository request less
    const [, end = Infinity] = /^bytes=0-(\d+)$/.exec(range) ?? []
    const isLook = isWeights(path) && Number(end) < LOOK_BYTES
    return may(path) || isLook ? undefined : { kind: 'hold', until: opened.promise }
  })
  const mirror = { hub_addr: ANY, s3_addr: ANY, oci_addr: ANY, ...more }
  const rig = await rigOf(fake, { mirror, hub: { limits: { rangeBytes: 1 << 20 } }, ...options })
  const { hubMirrorAddress } = JSON.parse(readFileSync(join(dirname(rig.daemon.socketPath), 'runtime.json'), 'utf8'))
  return {
    rig,
    fake,
    ask: s3Of(rig.daemon.socketPath),
    askHub: (path, asked) => askS3(hubMirrorAddress, path, asked),
    open(which) {
      may = which
      opened.resolve()
      opened = Promise.withResolvers()
    }
  }
}

interface Listed {
  readonly key: string
  readonly size: string
  readonly etag: string
  readonly modified: string
}

const listedIn = ({ text }: S3Answer): Listed[] =>
  [...text.matchAll(/<Key>([^<]*)<\/Key><LastModified>([^<]*)<.*?<ETag>([^<]*)<\/ETag><Size>(\d+)/g)].map(
    ([, key, modified, etag, size]) => ({ key: key!, size: size!, etag: etag!, modified: modified! })
  )

/** Enough for a busy machine. */
const until = (isSo: () => unknown): Promise<unknown> => vi.waitUntil(isSo, { timeout: 30_000 })

const settled = (work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))])

async function begin(it: World, more: Partial<ImportHfBody> = {}): Promise<Job> {
  const job = await it.rig.client.importHf({ repo: 'Acme/M', ...more })
  await until(() => it.rig.daemon.context.coming.imports.length > 0)
  return job
}

const TREE = '/api/models/Acme/M/tree/main?recursive=true'
const RESOLVE = `/Acme/M/resolve/main/${WEIGHTS[1]}`
const OBJECT = `${FOLDER}/${WEIGHTS[1]}`

test('an arriving model is listed as it will be, with its time; a read waits for its file, which is fetched first', async () => {
  const it = await world()
  const { ask } = it
  const job = await begin(it)
  const early = ask(LIST)
  it.open((path) => !isWeights(path))
  const coming = listedIn(await early)
  expect(coming.map(({ key }) => key)).toContain(`acme/m/bf16/${WEIGHTS[1]}`)
  expect(coming).toHaveLength(MODEL.files.length)
  expect(new Date(coming[0]!.modified).getFullYear()).toBeGreaterThan(2020)
  expect(listedIn(await ask('/models?list-type=2'))).toEqual(coming)
  expect((await ask(`${FOLDER}/config.json`)).text).toBe('{"model_type":"llama"}')
  expect((await ask(`${FOLDER}/tokenizer.json`)).body).toHaveLength(40_000)
  const head = await ask(`${FOLDER}/${WEIGHTS[1]}`, { method: 'HEAD' })
  expect([head.status, head.headers['content-length']]).toEqual([200, `${bytesOf[1]!.length}`])

  const part = ask(`${FOLDER}/${WEIGHTS[1]}`, { headers: { range: 'bytes=8-1007' } })
  const whole = ask(`${FOLDER}/${WEIGHTS[0]}`, { headers: { 'x-amz-checksum-mode': 'ENABLED' } })
  expect(await settled(part)).toBe(false)
  it.open((path) => path !== WEIGHTS[0])
  expect((await part).body.equals(bytesOf[1]!.subarray(8, 1008))).toBe(true)
  expect(await settled(whole)).toBe(false)
  expect((await it.rig.client.job(job.id)).state).toBe('fetching')
  it.open(() => true)
  const all = await whole
  expect([all.status, all.isCut, all.body.equals(bytesOf[0]!)]).toEqual([200, false, true])
  expect(await finished(it.rig, job)).toMatchObject({ state: 'done' })
  expect(listedIn(await ask(LIST))).toEqual(coming)
  expect(listedIn(await ask('/models?list-type=2'))).toEqual(coming)
})

const CHOICES: readonly Partial<ImportHfBody>[] = [{}, { names: 'normalized', quants: ['q8_0', 'bf16'] }]

test.each(CHOICES)('names, sizes, digests and times stay the same after the import (%o)', async (more) => {
  const repo = bigRepo()
  const it = await world({}, {}, [repo])
  it.open((path) => !path.endsWith('.gguf'))
  const job = await begin(it, { repo: repo.id, ...more })
  const s3 = '/models?list-type=2&prefix=odd.org/big_model-7b/'
  const hub = `/api/models/${repo.id}/tree/main?recursive=true`
  const [coming, tree] = [listedIn(await it.ask(s3)), (await it.askHub(hub)).text]
  expect(coming.length).toBeGreaterThan(50)
  it.open(() => true)
  expect(await finished(it.rig, job)).toMatchObject({ state: 'done' })
  expect(listedIn(await it.ask(s3))).toEqual(coming)
  expect((await it.askHub(hub)).text).toBe(tree)
})

test.each([
  ['without on_demand', {}],
  ['with on_demand', { on_demand: true }]
])('%s, a client of the hub’s mirror follows the import, and nothing is fetched twice', async (_, more) => {
  const it = await world({}, more)
  const job = await begin(it)
  const early = it.askHub(TREE)
  it.open((path) => !isWeights(path))
  expect(JSON.parse((await early).text).map(({ path }: { path: string }) => path)).toContain(WEIGHTS[1])
  expect((await it.askHub('/Acme/M/resolve/main/config.json')).text).toBe('{"model_type":"llama"}')
  const reading = it.askHub(RESOLVE)
  await until(() => it.rig.daemon.context.wanted.rankOf(digestOf(bytesOf[1]!)) !== undefined)
  it.open(() => true)
  const { status, isCut, body } = await reading
  expect([status, isCut, body.equals(bytesOf[1]!)]).toEqual([200, false, true])
  expect(await finished(it.rig, job)).toMatchObject({ state: 'done' })
  expect(await it.rig.client.jobs()).toHaveLength(1)
  expect(it.fake.bytesSent.get(WEIGHTS[1])).toBeLessThan(bytesOf[1]!.length + LOOK_BYTES)
})

/** All responses about the model, with those about a model that does not exist. */
async function heard({ ask, askHub }: World): Promise<readonly [unknown, unknown]> {
  const facts = ({ status, text, code }: S3Answer, name: string): unknown => [status, code, text.replaceAll(name, '')]
  const of = async (name: string): Promise<unknown> => {
    const low = name.toLowerCase()
    const object = `/models/${low}/bf16/${WEIGHTS[1]}`
    return [
      facts(await ask(`/models?list-type=2&prefix=${low}/`), low),
      facts(await ask('/models?list-type=2'), low),
      facts(await ask(object), low),
      facts(await ask(object, { method: 'HEAD' }), low),
      facts(await askHub(`/api/models/${name}/tree/main?recursive=true`), name),
      facts(await askHub(`/api/models/${name}`), name),
      facts(await askHub(`/${name}/resolve/main/${WEIGHTS[1]}`), name)
    ]
  }
  return [await of('Acme/M'), await of('Acme/N')]
}

/** Asks before anything is here, when all small files are, and at the end. */
async function expectNothing(it: World, job: Job, isShownAtTheEnd = false): Promise<void> {
  const early = await heard(it)
  expect(early[0]).toEqual(early[1])
  it.open((path) => !isWeights(path))
  await until(async () => (await it.rig.client.job(job.id)).filesDone === MODEL.files.length - 2)
  const late = await heard(it)
  expect(late[0]).toEqual(late[1])
  it.open(() => true)
  expect(await finished(it.rig, job)).toMatchObject({ state: 'done' })
  expect(listedIn(await it.ask(LIST)).length > 0).toBe(isShownAtTheEnd)
}

test('a private import is invisible', async () => {
  const it = await world()
  await expectNothing(it, await begin(it, { private: true }))
})

test('an import that needs a token is invisible', async () => {
  const it = await world({ token: 'good' }, {}, [{ ...MODEL, gated: 'auto' }])
  await expectNothing(it, await begin(it))
})

test('an import whose weights are private here is invisible', async () => {
  // as many small files as are fetched at once, so that the import does not reach the weights
  const small = Array.from({ length: 8 }, (_, n) => ({
    path: `chat_template_${n}.jinja`,
    content: Buffer.from(`${n}`)
  }))
  const it = await world({}, {}, [{ ...MODEL, files: [...small, ...MODEL.files] }])
  const paths = [await writeRepo(MODEL.files.filter(({ path }) => path === WEIGHTS[0]))]
  const own = await it.rig.client.importLocal({ paths, as: 'me/own', private: true })
  expect(await finished(it.rig, own)).toMatchObject({ state: 'done' })
  const job = await begin(it)
  const early = await heard(it)
  expect(early[0]).toEqual(early[1])
  it.open(() => true)
  expect(await finished(it.rig, job)).toMatchObject({ state: 'done' })
  expect(listedIn(await it.ask(LIST))).toEqual([])
})

/** Pretends that another import brought it. */
const RECORDS: Readonly<Record<string, (context: DaemonContext, state: ArtifactState) => Promise<void>>> = {
  'from the hub': async () => undefined,
  'by its pin': async ({ artifacts }, { manifestDigest, provenance, hints }) => {
    await artifacts.forget(manifestDigest)
    await artifacts.record({ manifestDigest, provenance, hints, source: { kind: 'bt' }, pinned: true })
  },
  'nobody knows how': async ({ store }, { manifestDigest }) =>
    writeFileSync(join(store.root, 'state', 'artifacts', `${manifestDigest.slice(7)}.json`), '{')
}

test.each(Object.keys(RECORDS))(
  'an import into a repository with a withheld artifact is invisible, if that artifact came %s',
  async (way) => {
    const it = await world()
    it.open(() => true)
    expect(await finished(it.rig, await begin(it, { as: 'me/mine', private: true }))).toMatchObject({ state: 'done' })
    const evicting = await it.rig.client.evict({ ref: 'svc:///me/mine:bf16' })
    expect(await finished(it.rig, evicting)).toMatchObject({ state: 'done' })
    const { context } = it.rig.daemon
    const [digest] = await context.artifacts.digests()
    await RECORDS[way]!(context, (await context.artifacts.read(digest!))!)
    it.open(() => false)
    await expectNothing(it, await begin(it))
  }
)

test('blobs from another source are not readable before the import brings them', async () => {
  const it = await world()
  const { job, readings } = await waiting(it)
  const paths = [await writeRepo(MODEL.files.filter(({ path }) => path === WEIGHTS[1]))]
  const own = await it.rig.client.importLocal({ paths, as: 'me/own', private: true })
  expect(await finished(it.rig, own)).toMatchObject({ state: 'done' })
  const later = [...readings, it.ask(OBJECT), it.askHub(RESOLVE)]
  for (let i = 0; i < 20; i++) expect((await it.ask(OBJECT, { method: 'HEAD' })).status).toBe(200)
  for (const reading of later) expect(await settled(reading)).toBe(false)
  it.open(() => true)
  for (const reading of later) expect((await reading).body.equals(bytesOf[1]!)).toBe(true)
  expect(await finished(it.rig, job)).toMatchObject({ state: 'done' })
})

test('a model with a file that another source began is invisible', async () => {
  const shards = Array.from({ length: 12 }, (_, i) => ({
    path: `model-q8_0-000${String(i + 1).padStart(2, '0')}-of-00012.gguf`,
    content: gguf(50_000 - i, i + 1)
  }))
  const it = await world({}, {}, [{ id: 'Acme/M', files: shards }])
  const { store, holdings } = it.rig.daemon.context
  const { content } = shards.at(-1)!
  const key = digestOf(Buffer.from(content))
  const partial = await store.partial({ key, digest: key, sizeBytes: content.length }, { attachments: [] })
  await holdings.arrivals.begin(key, 'hf:acme/secret', { isEmpty: true })
  await partial.write(0, content.subarray(0, 20_000))
  await partial.release()
  const job = await begin(it)
  await until(() => it.rig.daemon.context.coming.imports[0]!.models.length > 0)
  const early = await heard(it)
  expect(early[0]).toEqual(early[1])
  await it.rig.client.cancelJob(job.id)
})

test('a model that needs a signature is invisible until it is checked', async () => {
  const signer = signerIn(await tempFolder())
  const files = Object.entries(signer.sign(SIGNED)).map(([path, content]) => ({ path, content: Buffer.from(content) }))
  const trust = [{ names: ['acme/*'], mode: 'require', keys: [signer.keyFile] }]
  const it = await world({ trust }, {}, [{ id: 'Acme/M', files }])
  const job = await it.rig.client.importHf({ repo: 'Acme/M' })
  await until(async () => (await it.rig.client.job(job.id)).files !== undefined)
  const early = await heard(it)
  expect(early[0]).toEqual(early[1])
  it.open(() => true)
  expect(await finished(it.rig, job)).toMatchObject({ state: 'done' })
  expect(listedIn(await it.ask(LIST))).not.toEqual([])
})

/** Reads a file that has not arrived yet. */
async function waiting(it: World): Promise<{ readonly job: Job; readonly readings: readonly Promise<S3Answer>[] }> {
  const job = await begin(it)
  it.open((path) => !isWeights(path))
  expect(listedIn(await it.ask(LIST))).not.toEqual([])
  const readings = [it.ask(OBJECT), it.askHub(RESOLVE)]
  await until(() => it.rig.daemon.context.wanted.rankOf(digestOf(bytesOf[1]!)) !== undefined)
  return { job, readings }
}

test('an import that is cancelled, or whose bytes are wrong, cuts its readers', async () => {
  const it = await world()
  const { job, readings } = await waiting(it)
  await it.rig.client.cancelJob(job.id)
  for (const reading of readings) expect(await reading).toMatchObject({ isCut: true, body: Buffer.alloc(0) })
  const gone = await heard(it)
  expect(gone[0]).toEqual(gone[1])

  it.open(() => false)
  const again = await waiting(it)
  it.fake.setFaults(({ stage, path }) =>
    stage === 'cdn' && path === WEIGHTS[1] ? { kind: 'wrong-bytes', atByte: 100_000 } : undefined
  )
  it.open(() => true)
  for (const reading of again.readings) expect(await reading).toMatchObject({ isCut: true, body: Buffer.alloc(0) })
  expect(await finished(it.rig, again.job)).toMatchObject({ state: 'failed' })
})

test('readers that wait are cut when the model becomes withheld', async () => {
  const it = await world()
  const { readings } = await waiting(it)
  const { context } = it.rig.daemon
  await context.artifacts.record({
    manifestDigest: digestOf(Buffer.from('another quant')),
    source: { kind: 'hf', repo: 'Acme/M', revision: 'b'.repeat(40) },
    provenance: { access: 'public', decision: { is: 'private' } },
    hints: { trackers: [], webseeds: [], peers: [] }
  })
  for (const reading of readings) expect(await reading).toMatchObject({ isCut: true, body: Buffer.alloc(0) })
  const gone = await heard(it)
  expect(gone[0]).toEqual(gone[1])
})
