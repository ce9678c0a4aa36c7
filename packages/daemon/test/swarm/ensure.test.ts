import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ApiClient, sharedByFile, testDaemon } from '../support/daemon.ts'
import { writeFiles } from '../support/models.ts'
import { eventually, MIB, Node, pinned, refOf, weights } from './nodes.ts'

const FILES = {
  'model-q8_0.gguf': weights(2 * MIB + 9, 51),
  'config.json': '{"model_type":"llama"}',
  'tokenizer.json': '{}'
}

const source = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  return { node, share: await node.publish(FILES) }
})

const weightsBlob = async (node: Node, manifest: string): Promise<string> =>
  (await node.client.open(refOf(manifest))).files.find(({ kind }) => kind === 'weights.gguf')!.digest

test('with all blobs present, the job is done at once', async () => {
  const { node, share } = await source()
  const job = await node.client.ensure({ ref: refOf(share.manifestDigest) })
  expect(job).toMatchObject({
    kind: 'ensure',
    state: 'done',
    ref: refOf(share.manifestDigest),
    manifest: share.manifestDigest
  })
  expect(job.filesDone).toBe(job.filesTotal)
  expect(job.bytesDone).toBe(job.bytesTotal)
})

test.each([
  ['nonsense', 'E_PARSE'],
  ['svc:///me/model', 'E_PARSE'],
  ['me/model:q8_0', 'E_PARSE'],
  [`svc:///me/${'x'.repeat(600)}:q8_0`, 'E_LENGTH'],
  ['svc:///no/body:q8_0', 'E_UNKNOWN_REF'],
  ['svc:///me/model:q4_0', 'E_NO_MEMBER']
])('%s: the job fails at once with its code', async (ref, code) => {
  const { node } = await source()
  // not through the typed client, which turns short forms into canonical ones.
  const { body } = await new ApiClient(node.running.socketPath).post('/v1/ensure', { ref })
  expect(body).toMatchObject({
    kind: 'ensure',
    state: 'failed',
    error: { code }
  })
})

test('without the manifest, E_SOURCE_UNAVAILABLE names the imports', async () => {
  const { node } = await source()
  const job = await node.client.ensure({ ref: refOf(`sha256:${'00'.repeat(32)}`) })
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
  for (const endpoint of ['/v1/import/local', '/v1/import/hf', '/v1/import/bt'])
    expect(job.error!.message).toContain(endpoint)
})

test('with missing files and the swarm off, E_SOURCE_UNAVAILABLE names the setting', async () => {
  const daemon = await testDaemon()
  const job = await daemon.import([writeFiles(join(daemon.folder, 'files'), FILES)])
  const manifest = job.result!.manifests[0]!
  const { body } = await daemon.open(refOf(manifest))
  rmSync(body.files.find(({ kind }: { kind: string }) => kind === 'weights.gguf').path)
  const { status, body: failed } = await daemon.post('/v1/ensure', { ref: refOf(manifest) })
  expect(status).toBe(201)
  expect(failed).toMatchObject({ kind: 'ensure', state: 'failed', error: { code: 'E_SOURCE_UNAVAILABLE' } })
  expect(failed.error.message).toMatch(/\[swarm\]/)
})

test('a blob that verify moved to quarantine is fetched again, and served intact afterwards', async () => {
  const { share } = await source()
  const node = await Node.start()
  expect(await node.importBt(pinned(share))).toMatchObject({ state: 'done' })
  const digest = await weightsBlob(node, share.manifestDigest)
  // peers have read it before: an open descriptor must not go on giving the bad bytes
  const early = await Node.start()
  const own = await node.announced(share.manifestDigest)
  expect(await early.importBt(pinned(own))).toMatchObject({ state: 'done' })

  const path = node.blobPath(digest)
  const bytes = readFileSync(path)
  bytes[MIB]! ^= 1
  chmodSync(path, 0o644)
  writeFileSync(path, bytes)
  const verify = await node.done(await node.client.verify({ target: refOf(share.manifestDigest) }))
  expect(verify).toMatchObject({
    state: 'failed',
    error: { code: 'E_VERIFY_FAILED' },
    verify: { mismatched: [digest] }
  })
  expect((await node.client.open(refOf(share.manifestDigest))).missing).toEqual([digest])
  expect(readdirSync(join(node.root, 'quarantine')).length).toBeGreaterThan(0)

  const first = await node.client.ensure({ ref: refOf(share.manifestDigest) })
  expect(first).toMatchObject({ state: 'waiting', kind: 'ensure' })
  const job = await node.done(first)
  expect(job).toMatchObject({ state: 'done' })
  expect(job.filesDone).toBe(job.filesTotal)
  expect(job.bytesDone).toBe(job.bytesTotal)
  await node.expectWhole(share.manifestDigest)
  // seeding goes on at once, with good bytes
  const healed = await node.share(share.manifestDigest)
  expect(healed.announced).toBe(true)
  const late = await Node.start()
  expect(await late.importBt(pinned(healed))).toMatchObject({ state: 'done' })
  await late.expectWhole(share.manifestDigest)
})

test('if layers and weights are both in quarantine, peers are asked for the hashes', async () => {
  const { share } = await source()
  const node = await Node.start()
  expect(await node.importBt(pinned(share, { webseeds: share.webseeds as string[] }))).toMatchObject({ state: 'done' })
  const state = (await node.running.context.artifacts.read(share.manifestDigest as never))!
  const record = JSON.parse(readFileSync(node.blobPath(state.record!)).toString()) as {
    torrent: { pieceLayersDigest: string }
  }
  await node.stop()
  for (const digest of [
    record.torrent.pieceLayersDigest,
    await (async () => {
      const manifest = JSON.parse(readFileSync(node.blobPath(share.manifestDigest)).toString()) as {
        files: { kind: string; digest: string }[]
      }
      return manifest.files.find(({ kind }) => kind === 'weights.gguf')!.digest
    })()
  ])
    rmSync(node.blobPath(digest), { force: true })
  const again = await Node.start({ folder: node.folder })
  expect(await again.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  await again.expectWhole(share.manifestDigest)
})

test('without a source, E_SOURCE_UNAVAILABLE comes soon, and the next attempt can succeed', async () => {
  const node = await Node.start({ swarm: { fill_timeout: 1 } })
  const manifest = await node.importFiles(FILES)
  const digest = await weightsBlob(node, manifest)
  rmSync(node.blobPath(digest))
  expect(await node.ensure(manifest)).toMatchObject({
    state: 'failed',
    error: { code: 'E_SOURCE_UNAVAILABLE' }
  })
  const { share } = await source()
  const { artifacts } = node.running.context
  await artifacts.record({
    ...(await artifacts.read(manifest))!,
    hints: { trackers: [], webseeds: [], peers: share.peers }
  })
  expect(await node.ensure(manifest)).toMatchObject({ state: 'done' })
  await node.expectWhole(manifest)
})

test('a stop of the daemon ends the fill, and nothing of it is addressable', async () => {
  const { share } = await source()
  const node = await Node.start()
  await node.client.importBt(pinned(share, { peers: ['127.0.0.1:9'], webseeds: [...share.webseeds] }))
  await eventually(() => (node.blobs().length > 0 ? true : undefined))
  await node.stop()
  const again = await Node.start({ folder: node.folder })
  await again.expectSound()
  expect(await again.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
})
