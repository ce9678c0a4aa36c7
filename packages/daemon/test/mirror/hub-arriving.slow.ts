// A file of a model is lost: while something fetches it again, clients of the hub's mirror see it and wait for it.
import { readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parseDigest } from '@svc/ref'
import { expect, test } from 'vitest'
import { safetensors } from '../support/models.ts'
import { eventually, MIB, Node, pinned } from '../swarm/nodes.ts'
import { digestOf, gated } from './arriving.ts'
import { askS3 } from './s3-client.ts'

const COMMIT = 'b'.repeat(40)
const WEIGHTS = safetensors(MIB)
const FILES = { 'model.safetensors': WEIGHTS, 'config.json': '{"model_type":"llama"}' }
const OBJECT = `/Acme/M/resolve/${COMMIT}/model.safetensors`
const TREE = `/api/models/Acme/M/tree/${COMMIT}?recursive=true`

test('a model that is being fetched again is listed, and readable while it arrives', { timeout: 120_000 }, async () => {
  const seed = await Node.start({})
  const share = await seed.publish(FILES, 'acme/model')
  const gate = await gated(share)
  gate.open()
  const node = await Node.start({ mirror: { hub_addr: '127.0.0.1:0' }, swarm: { fill_timeout: 600 } })
  const hints = { webseeds: [gate.url], peers: [], trackers: [] }
  expect(await node.importBt(pinned(share, { ...hints, as: 'acme/model' }))).toMatchObject({ state: 'done' })
  const { artifacts } = node.running.context
  const state = (await artifacts.read(parseDigest(share.manifestDigest)))!
  // as if it had come from the hub
  await artifacts.record({
    ...state,
    source: { kind: 'hf', repo: 'Acme/M', revision: COMMIT },
    provenance: { access: 'public' }
  })
  const { hubMirrorAddress } = JSON.parse(readFileSync(join(node.folder, 'runtime.json'), 'utf8'))
  const ask = (path: string, headers = {}) => askS3(hubMirrorAddress, path, { headers })
  const listed = async (): Promise<unknown> => {
    const { status, body } = await ask(TREE)
    return status === 200 ? JSON.parse(body.toString()).map(({ path }: { path: string }) => path) : status
  }
  expect((await ask(OBJECT)).body.equals(WEIGHTS)).toBe(true)
  const before = await listed()
  expect(before).toContain('model.safetensors')

  gate.open(() => false)
  unlinkSync(node.blobPath(digestOf(WEIGHTS)))
  expect((await ask(OBJECT)).status).toBe(404)
  const asked = gate.asked.length
  const { id } = await node.client.ensure({ ref: 'svc:///acme/model:bf16' })
  await eventually(() => (gate.asked.length > asked ? true : undefined))
  expect(await listed()).toEqual(before)
  const reading = ask(OBJECT, { range: `bytes=${MIB}-` })
  gate.open()
  const { status, isCut, body } = await reading
  expect([status, isCut, body.equals(WEIGHTS.subarray(MIB))]).toEqual([206, false, true])
  expect(await node.client.waitJob(await node.client.job(id))).toMatchObject({ state: 'done' })
  expect((await ask(OBJECT)).body.equals(WEIGHTS)).toBe(true)
})
