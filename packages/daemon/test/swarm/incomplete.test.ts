import { mkdirSync, readdirSync, rmSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Job } from '@svc/client/protocol'
import { sealManifest, torrentOf } from '@svc/manifest'
import { digestFromHex } from '@svc/ref'
import { expect, onTestFinished, test } from 'vitest'
import { contentOf, kindOf, startWebseed } from './fake-webseed.ts'
import { eventually, MIB, modelAlone, Node, pinned, weights } from './nodes.ts'

test('verify of everything finds no damage during or after an interrupted pinned import', async () => {
  const seeder = await Node.start()
  const share = await seeder.publish({ 'model-q8_0.gguf': weights(3 * MIB, 41) })
  const content = await contentOf(share)
  // the documents are given, the files are not: the layers, and so the record, are known from the start.
  let open = false
  const webseed = await startWebseed(content, (path) => !open && kindOf(path) === 'file')
  const node = await Node.start()
  const job = await node.client.importBt(pinned(share, { webseeds: [webseed.url], peers: [] }))
  await eventually(() => (webseed.requests.some((path) => kindOf(path) === 'file') ? true : undefined))
  const verify = async (): Promise<Job> => node.done(await node.client.verify({ target: 'all' }))
  expect(await node.running.context.artifacts.read(share.manifestDigest as never)).toHaveProperty('record')
  expect(await verify()).toMatchObject({ state: 'done', verify: {} })

  await node.stop()
  const again = await Node.start({ folder: node.folder })
  const verifyAgain = async (): Promise<Job> => again.done(await again.client.verify({ target: 'all' }))
  expect(await verifyAgain()).toMatchObject({ state: 'done', verify: {} })
  expect(job.kind).toBe('import-bt')

  open = true
  expect(await again.ensure(share.manifestDigest)).toMatchObject({ state: 'done' })
  expect(await verifyAgain()).toMatchObject({ state: 'done', verify: {} })
  const { files } = JSON.parse([...content].find(([path]) => kindOf(path) === 'manifest')![1].toString()) as {
    files: { digest: string; name: string }[]
  }
  const lost = files.find(({ name }) => name === 'model-q8_0.gguf')!.digest
  unlinkSync(again.blobPath(lost))
  expect(await verifyAgain()).toMatchObject({ state: 'failed', verify: { missing: [lost] } })
})

test('a fill that cannot write its journals releases every file to the next one', async () => {
  const dropped: unknown[] = []
  const note = (error: unknown): void => void dropped.push(error)
  process.on('unhandledRejection', note)
  onTestFinished(() => void process.off('unhandledRejection', note))
  const seeder = await Node.start()
  const files = { 'model-q8_0.gguf': weights(3 * MIB, 51), 'model-q4_0.gguf': weights(2 * MIB, 52) }
  const share = modelAlone(await seeder.publish({ ...files, 'config.json': '{"model_type":"llama"}' }))
  let open = false
  const webseed = await startWebseed(await contentOf(share), (path) => !open && kindOf(path) === 'file')
  const node = await Node.start()
  const job = await node.client.importBt(pinned(share, { webseeds: [webseed.url], peers: [] }))
  await eventually(() => (webseed.requests.some((path) => kindOf(path) === 'file') ? true : undefined))
  // a folder where each journal belongs: renaming a file to it fails, as writing one does on a full disk.
  const incoming = join(node.root, 'incoming')
  const parts = readdirSync(incoming).filter((name) => name.endsWith('.part'))
  expect(parts.length).toBeGreaterThan(1)
  const blocked = parts.map((name) => join(incoming, name.replace(/part$/, 'json')))
  for (const path of blocked) {
    rmSync(path, { force: true })
    mkdirSync(join(path, 'in-the-way'), { recursive: true })
  }
  await node.client.cancelJob(job.id)
  expect(await node.done(job)).toMatchObject({ state: 'failed', error: { code: 'E_ABORTED' } })
  for (const path of blocked) rmSync(path, { recursive: true })
  open = true
  expect(await node.importBt(pinned(share, { webseeds: [webseed.url], peers: [] }))).toMatchObject({ state: 'done' })
  await node.expectWhole(share.manifestDigest)
  expect(dropped).toEqual([])
})

test('a manifest that claims more than the disk holds is refused before its layers are asked for', async () => {
  const root = digestFromHex('b'.repeat(64))
  const manifest = sealManifest(
    [
      {
        kind: 'config',
        name: 'modelconfig.json',
        digest: digestFromHex('c'.repeat(64)),
        size: 10,
        bt: { merkleRoot: root }
      },
      {
        kind: 'weights.gguf',
        name: 'm-q4_0.gguf',
        digest: digestFromHex('a'.repeat(64)),
        size: 2 ** 44,
        bt: { merkleRoot: root }
      }
    ] as never,
    {}
  )
  const torrent = torrentOf(manifest)
  const name = `/${torrent.name}/manifest/sha256-${manifest.digest.slice(7)}`
  const webseed = await startWebseed(new Map([[name, Buffer.from(manifest.bytes)]]))
  const node = await Node.start()
  const job = await node.importBt({
    infohash: torrent.infohashText,
    manifestDigest: manifest.digest,
    webseeds: [webseed.url],
    peers: []
  })
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NO_SPACE' } })
  expect(webseed.requests.map(kindOf)).toEqual(['manifest'])
})
