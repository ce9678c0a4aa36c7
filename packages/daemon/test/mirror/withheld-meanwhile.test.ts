// The owner makes a model private while a mirror prepares a response about it: the last check decides (spec add.37).
import { readFileSync, writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Sha256Digest } from '@svc/ref'
import { seededBytes } from '@svc/testkit/models'
import { expect, onTestFinished, test } from 'vitest'
import type { DaemonContext } from '../../src/app/compose.ts'
import { mergeConfig } from '../../src/config/config.ts'
import { type TestDaemon, temporaryFolder, testDaemon } from '../support/daemon.ts'

const COMMIT = 'a'.repeat(40)
const QUANTS = ['q4_0', 'q8_0'] as const
const weights = (quant: string, sizeBytes: number): Buffer =>
  Buffer.concat([
    Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1'),
    seededBytes(sizeBytes, quant.length + Number(quant[1]))
  ])

type Door = 'hub' | 'oci' | 's3'

interface Mirrors {
  readonly daemon: TestDaemon
  readonly context: DaemonContext
  /** Digests of the weights. */
  readonly digests: readonly string[]
  ask(door: Door, path: string): Promise<{ status: number; text: string }>
  urlOf(door: Door, path: string): string
}

/** Reads only the head of a response; `rest` then says whether all of it arrived. */
async function begun(url: string): Promise<{ status: number; rest(): Promise<boolean> }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, resolve).on('error', reject)
  })
  const rest = async (): Promise<boolean> => {
    answer.resume()
    await new Promise((resolve) => answer.on('error', () => undefined).once('close', resolve))
    return answer.complete
  }
  return { status: answer.statusCode!, rest }
}

/** Two quants of a model, which both mirrors show. */
async function mirrors(sizeBytes = 5_000): Promise<Mirrors> {
  const folder = temporaryFolder()
  const any = '127.0.0.1:0'
  const file = { swarm: { enabled: false }, mirror: { hub_addr: any, oci_addr: any, s3_addr: any } }
  const daemon = await testDaemon({ folder, config: mergeConfig(file, { root: join(folder, 'root') }, {}) })
  const { context } = daemon.running
  const paths = QUANTS.map((quant) => join(folder, `model-${quant}.gguf`))
  for (const [i, path] of paths.entries()) writeFileSync(path, weights(QUANTS[i]!, sizeBytes))
  const { result } = await daemon.import(paths, 'acme/m')
  const digests: string[] = []
  for (const manifest of result!.manifests as Sha256Digest[]) {
    const state = (await context.artifacts.read(manifest))!
    await context.artifacts.record({
      ...state,
      source: { kind: 'hf', repo: 'Acme/M', revision: COMMIT },
      provenance: { access: 'public' }
    })
    const { files } = (await context.documents.manifest(manifest))!
    digests.push(files.find(({ kind }) => kind === 'weights.gguf')!.digest)
  }
  const facts = JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8'))
  const urlOf: Mirrors['urlOf'] = (door, path) => `http://${facts[`${door}MirrorAddress`]}${path}`
  const ask: Mirrors['ask'] = async (door, path) => {
    const answer = await fetch(urlOf(door, path))
    return { status: answer.status, text: await answer.text() }
  }
  return { daemon, context, digests, ask, urlOf }
}

/** Delays the result of one call of a method, without changing it. */
function stopped<M extends string>(target: Record<M, (...asked: never[]) => unknown>, method: M, call = 1) {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  onTestFinished(() => released.resolve())
  const original = target[method].bind(target)
  let calls = 0
  target[method] = async (...asked: never[]) => {
    const found = await original(...asked)
    if (++calls !== call) return found
    reached.resolve()
    await released.promise
    return found
  }
  return { isReached: reached.promise, letGo: released.resolve }
}

const info = `/api/models/Acme/M/revision/${COMMIT}?blobs=true`
const tree = `/api/models/Acme/M/tree/${COMMIT}`
const manifest = '/v2/acme/m/manifests/q4_0'

async function makePrivate({ daemon }: Mirrors, quant: string): Promise<void> {
  const body = { ref: `svc:///acme/m:${quant}`, private: true }
  expect((await daemon.call('PUT', '/v1/private', { body })).status).toBe(200)
}

test.each([
  ['oci', manifest],
  ['hub', info],
  ['hub', tree],
  ['hub', '/api/models/Acme/M/refs'],
  ['s3', '/models/acme/m/q4_0/model-q4_0.gguf']
] as const)('%s %s is not answered if the model became private before its files are known', async (door, path) => {
  const it = await mirrors()
  const { isReached, letGo } = stopped(it.context.views.lent, 'lend')
  const asked = it.ask(door, path)
  await isReached
  for (const quant of QUANTS) await makePrivate(it, quant)
  letGo()
  const { status, text } = await asked
  expect(status).toBe(404)
  for (const digest of it.digests) expect(text).not.toContain(digest.slice(7))
})

test.each([
  ['oci', 'blob'],
  ['hub', `/Acme/M/resolve/${COMMIT}/model-q4_0.gguf`],
  ['s3', '/models/acme/m/q4_0/model-q4_0.gguf']
] as const)('%s: a file is not sent if the model became private before it is open (%s)', async (door, named) => {
  const it = await mirrors()
  const path = named === 'blob' ? `/v2/acme/m/blobs/${it.digests[0]}` : named
  // everything but the file itself is cached
  expect((await it.ask(door, path)).status).toBe(200)
  const { isReached, letGo } = stopped(it.context.store, 'open')
  const asked = it.ask(door, path)
  await isReached
  for (const quant of QUANTS) await makePrivate(it, quant)
  letGo()
  expect((await asked).status).toBe(404)
})

test.each([
  ['oci', 'blob'],
  ['hub', `/Acme/M/resolve/${COMMIT}/model-q4_0.gguf`],
  ['s3', '/models/acme/m/q4_0/model-q4_0.gguf']
] as const)('%s: a running download ends when its model becomes private (%s)', async (door, named) => {
  // more than the sockets of both sides buffer
  const it = await mirrors(32 << 20)
  const path = named === 'blob' ? `/v2/acme/m/blobs/${it.digests[0]}` : named
  const [first, second] = [await begun(it.urlOf(door, path)), await begun(it.urlOf(door, path))]
  expect([first.status, second.status]).toEqual([200, 200])
  await makePrivate(it, 'q8_0')
  expect(await first.rest()).toBe(true)
  await makePrivate(it, 'q4_0')
  expect(await second.rest()).toBe(false)
})

test('a tag is not listed if its model became private during the listing', async () => {
  const it = await mirrors()
  expect(JSON.parse((await it.ask('oci', '/v2/acme/m/tags/list')).text).tags).toEqual(QUANTS)
  const { isReached, letGo } = stopped(it.context.artifacts, 'standing', 2)
  const asked = it.ask('oci', '/v2/acme/m/tags/list')
  await isReached
  await makePrivate(it, 'q4_0')
  letGo()
  expect(JSON.parse((await asked).text).tags).toEqual(['q8_0'])
})

test('s3: a listing is not answered if its model became private before its files are known', async () => {
  const it = await mirrors()
  const { isReached, letGo } = stopped(it.context.views.lent, 'lend')
  const asked = it.ask('s3', '/models?list-type=2&prefix=acme/m/q4_0/')
  await isReached
  await makePrivate(it, 'q4_0')
  letGo()
  const { status, text } = await asked
  expect([status, /<KeyCount>(\d+)/.exec(text)![1]]).toEqual([200, '0'])
})

test('a small blob is not sent if its model became private during the lookup', async () => {
  const it = await mirrors()
  const { config } = JSON.parse((await it.ask('oci', manifest)).text)
  const path = `/v2/acme/m/blobs/${config.digest}`
  expect((await it.ask('oci', path)).status).toBe(200)
  const { isReached, letGo } = stopped(it.context.artifacts, 'standing', 2)
  const asked = it.ask('oci', path)
  await isReached
  await makePrivate(it, 'q4_0')
  letGo()
  expect((await asked).status).toBe(404)
})

test('a verdict read during a write of its record is read again', async () => {
  const it = await mirrors()
  expect((await it.ask('oci', manifest)).status).toBe(200)
  // three read the artifacts of the name and their companions; the fourth is the last check
  const { isReached, letGo } = stopped(it.context.artifacts, 'standing', 4)
  const asked = it.ask('oci', manifest)
  await isReached
  await makePrivate(it, 'q4_0')
  letGo()
  expect((await asked).status).toBe(404)
})

test('nothing is unpacked for a name of private models, and no pending model is shown', async () => {
  const it = await mirrors()
  for (const quant of QUANTS) await makePrivate(it, quant)
  let views = 0
  const lend = it.context.views.lent.lend.bind(it.context.views.lent)
  it.context.views.lent.lend = (...asked) => {
    views++
    return lend(...asked)
  }
  for (const path of [manifest, `/v2/acme/m/blobs/${it.digests[0]}`, '/v2/acme/m/tags/list'])
    expect((await it.ask('oci', path)).status).toBe(404)
  expect(views).toBe(0)
  // and a model that may be shown again is there again
  const body = { ref: 'svc:///acme/m:q4_0', private: false }
  expect((await it.daemon.call('PUT', '/v1/private', { body })).status).toBe(200)
  expect((await it.ask('oci', manifest)).status).toBe(200)
})
