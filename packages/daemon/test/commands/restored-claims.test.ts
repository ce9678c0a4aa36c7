// A backup of a stranger's names bytes that it does not have: what it says of who may have them is nobody's word (spec add.37).
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { StoreSnapshot } from '@svc/publish'
import { digestHex, type Sha256Digest } from '@svc/ref'
import { recordText } from '@svc/testkit/records'
import { expect, test } from 'vitest'
import { writeFiles } from '../support/models.ts'
import { restored } from '../support/restored.ts'
import { Node, refOf, weights } from '../swarm/nodes.ts'

const WEIGHTS = weights(70_000, 98)
const BESIDE = '{"temperature":0.5}'
const FILES = { 'model-q8_0.gguf': WEIGHTS, 'config.json': '{"model_type":"llama"}', 'generation_config.json': BESIDE }
const CLEAN = { 'clean-q8_0.gguf': weights(70_000, 99), 'config.json': '{"model_type":"llama"}' }

/** The digests of a model's files and companions, by name. */
async function digestsOf(node: Node, manifest: string): Promise<Readonly<Record<string, Sha256Digest>>> {
  const { files } = await node.client.open(refOf(manifest))
  const { companions } = (await node.running.context.artifacts.read(manifest as Sha256Digest))!
  const documents = await Promise.all(
    Object.values(companions ?? {}).map((digest) => node.running.context.documents.companions(digest))
  )
  const beside = documents.flatMap((document) => document!.files)
  return Object.fromEntries([
    ...files.map(({ name, digest }) => [name, digest as Sha256Digest]),
    ...beside.map(({ path, digest }) => [path, digest])
  ])
}

const without =
  (lacking: readonly Sha256Digest[]) =>
  (snapshot: StoreSnapshot): StoreSnapshot => ({
    ...snapshot,
    blobs: new Map([...snapshot.blobs].filter(([digest]) => !lacking.includes(digest)))
  })

const withheld = async (node: Node, ref: string): Promise<readonly (string | undefined)[]> => [
  ...new Set((await node.client.why(ref)).doors.map((door) => door.withheld?.fact))
]

test.each(['model-q8_0.gguf', 'generation_config.json'])(
  'a restored record vouches for no %s that comes later',
  async (name) => {
    const stranger = await Node.start()
    const { manifestDigest } = await stranger.publish(FILES, 'evil/model')
    const clean = await stranger.publish(CLEAN, 'evil/clean')
    const { [name]: lacking } = await digestsOf(stranger, manifestDigest)
    const node = await Node.start({ folder: await restored(stranger, without([lacking!])) })

    // the owner's own, under another name
    const own = {
      'own-q8_0.gguf': name === 'model-q8_0.gguf' ? WEIGHTS : weights(70_000, 100),
      'generation_config.json': BESIDE
    }
    const paths = [writeFiles(join(node.folder, 'own'), own)]
    expect(await node.done(await node.client.importLocal({ paths, as: 'me/own', private: true }))).toMatchObject({
      state: 'done'
    })
    expect(await withheld(node, refOf(manifestDigest))).toEqual(['unproven'])
    expect((await node.share(manifestDigest)).announced).toBe(false)
    const source = { kind: 'hf', repo: 'evil/listing', revision: 'a'.repeat(40) } as const
    expect(await node.running.context.holdings.proven([lacking!], source)).toEqual(new Set())
    // what the backup has, it vouches for
    expect(await withheld(node, refOf(clean.manifestDigest))).toEqual([undefined])

    // the owner's word counts
    await node.client.setPrivate({ ref: refOf(manifestDigest), private: false })
    expect(await withheld(node, refOf(manifestDigest))).toEqual([undefined])
  }
)

test('a restored artifact that lacks bytes is not known to be public, and a decision to share it does not count', async () => {
  const stranger = await Node.start()
  const { manifestDigest } = await stranger.publish(FILES, 'evil/model')
  await stranger.client.setPrivate({ ref: refOf(manifestDigest), private: false })
  const { 'model-q8_0.gguf': lacking } = await digestsOf(stranger, manifestDigest)
  const node = await Node.start({ folder: await restored(stranger, without([lacking!])) })
  const { provenance } = (await node.running.context.artifacts.read(manifestDigest as Sha256Digest))!
  expect(provenance).toEqual({ access: 'unknown', unproven: ['model-q8_0.gguf'] })
})

test('a decision to share what a pinned import has yet to bring does not count', async () => {
  const stranger = await Node.start()
  const { manifestDigest } = await stranger.publish(FILES, 'evil/model')
  const { 'model-q8_0.gguf': lacking } = await digestsOf(stranger, manifestDigest)
  const record = {
    source: { kind: 'bt' },
    provenance: { access: 'public', decision: { is: 'shared' } },
    pinned: true,
    hints: { trackers: [], webseeds: [], peers: [] },
    incomplete: true
  }
  const path = `artifacts/${digestHex(manifestDigest as Sha256Digest)}.json`
  const folder = await restored(stranger, (snapshot) => ({
    ...without([lacking!])(snapshot),
    state: new Map([...snapshot.state, [path, Buffer.from(recordText(record, 4))]])
  }))
  const node = await Node.start({ folder })
  const { provenance } = (await node.running.context.artifacts.read(manifestDigest as Sha256Digest))!
  expect(provenance).toEqual({ access: 'public' })
})

test('notes on where bytes came from are restored with the bytes', async () => {
  const stranger = await Node.start()
  const share = await stranger.publish(CLEAN, 'evil/clean')
  const { 'clean-q8_0.gguf': has } = await digestsOf(stranger, share.manifestDigest)
  const lacks = `sha256:${'ab'.repeat(32)}` as Sha256Digest
  const note = Buffer.from(recordText({ from: ['hf:evil/listing'], committed: true }, 4))
  const pathOf = (digest: Sha256Digest): string => `arrivals/${digestHex(digest)}.json`
  const folder = await restored(stranger, (snapshot) => ({
    ...snapshot,
    state: new Map([...snapshot.state, [pathOf(has!), note], [pathOf(lacks), note]])
  }))
  const isThere = (digest: Sha256Digest): boolean => existsSync(join(folder, 'root/state', pathOf(digest)))
  expect([isThere(has!), isThere(lacks)]).toEqual([true, false])
})
