// An unfinished artifact does not reveal private bytes that it names.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MIB, Node, weights } from '../swarm/nodes.ts'
import { ask, digestOf, gated, importing } from './arriving.ts'

const WEIGHTS = 'model-q8_0.gguf'
const FILES = { [WEIGHTS]: weights(MIB + 9, 62), 'config.json': '{"model_type":"llama"}' }
const digest = digestOf(FILES[WEIGHTS]!)

test('the mirror withholds an unfinished artifact once a private import brings bytes that it names', {
  timeout: 60_000
}, async () => {
  const seed = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } })
  const share = await seed.publish(FILES, 'acme/model')
  const gate = await gated(share)
  const node = await importing(gate, share, { on_demand: true })
  gate.open((path) => !path.endsWith('.gguf'))
  expect(await ask(node, 'manifests/q8_0')).toMatchObject({ status: 200 })

  const path = join(node.folder, WEIGHTS)
  writeFileSync(path, FILES[WEIGHTS]!)
  const kept = await node.client.importLocal({ paths: [path], as: 'me/kept', private: true })
  expect(await node.client.waitJob(kept, { intervalMs: 1 })).toMatchObject({ state: 'done' })
  for (const asked of [`blobs/${digest}`, 'manifests/q8_0', 'tags/list'])
    expect(await ask(node, asked), asked).toMatchObject({ status: 404 })

  gate.open()
  const [job] = (await node.client.jobs()).filter(({ kind }) => kind === 'import-bt')
  expect(await node.client.waitJob(job!, { intervalMs: 1 })).toMatchObject({ state: 'done' })
  expect(await node.client.why('svc:///acme/model:q8_0')).toMatchObject({ unproven: [WEIGHTS] })
  for (const asked of [`blobs/${digest}`, 'manifests/q8_0', 'tags/list'])
    expect(await ask(node, asked), asked).toMatchObject({ status: 404 })

  // until the owner changes it
  await node.client.setPrivate({ ref: 'svc:///acme/model:q8_0', private: false })
  expect(await ask(node, `blobs/${digest}`)).toMatchObject({ status: 200 })
})

test('a client that waits for a manifest learns nothing about bytes that became private meanwhile', {
  timeout: 60_000
}, async () => {
  const seed = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } })
  const share = await seed.publish(FILES, 'acme/model')
  const gate = await gated(share)
  const node = await importing(gate, share, { on_demand: true })
  const { holdings } = node.running.context
  const asked = Promise.withResolvers<void>()
  const unprovenNow = holdings.unprovenNow.bind(holdings)
  holdings.unprovenNow = (manifest) => {
    asked.resolve()
    return unprovenNow(manifest)
  }
  const answer = ask(node, 'manifests/q8_0')
  await asked.promise
  const path = join(node.folder, WEIGHTS)
  writeFileSync(path, FILES[WEIGHTS]!)
  const kept = await node.client.importLocal({ paths: [path], as: 'me/kept', private: true })
  expect(await node.client.waitJob(kept, { intervalMs: 1 })).toMatchObject({ state: 'done' })
  gate.open((each) => !each.endsWith('.gguf'))
  expect(await answer).toMatchObject({ status: 404 })
})

test('a failed local import does not reveal its weights through an unfinished artifact that names them', {
  timeout: 60_000
}, async () => {
  const seed = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } })
  const share = await seed.publish(FILES, 'acme/model')
  const gate = await gated(share)
  const node = await importing(gate, share, { on_demand: true })
  gate.open((path) => !path.endsWith('.gguf'))
  expect(await ask(node, 'manifests/q8_0')).toMatchObject({ status: 200 })

  // the other model of that name is not replaced, which is found when the bytes are in
  const bring = async (name: string, bytes: Buffer) => {
    const path = join(node.folder, name)
    writeFileSync(path, bytes)
    const job = await node.client.importLocal({ paths: [path], as: 'me/kept', private: true, replace: false })
    return node.client.waitJob(job, { intervalMs: 1 })
  }
  expect(await bring('first.gguf', weights(MIB, 63))).toMatchObject({ state: 'done' })
  expect(await bring('second.gguf', FILES[WEIGHTS]!)).toMatchObject({ state: 'failed' })
  for (const asked of [`blobs/${digest}`, 'manifests/q8_0', 'tags/list'])
    expect(await ask(node, asked), asked).toMatchObject({ status: 404 })
  gate.open()
})

test('a waiting client of the OCI mirror does not get bytes that a private import brings', {
  timeout: 60_000
}, async () => {
  const seed = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } })
  const share = await seed.publish(FILES, 'acme/model')
  const gate = await gated(share)
  const node = await importing(gate, share, {})
  gate.open((path) => !path.endsWith('.gguf'))
  expect(await ask(node, 'manifests/q8_0')).toMatchObject({ status: 200 })
  const { promise: head, resolve } = Promise.withResolvers<number>()
  const pull = ask(node, `blobs/${digest}`, { onHead: resolve })
  expect(await head).toBe(200)

  const path = join(node.folder, WEIGHTS)
  writeFileSync(path, FILES[WEIGHTS]!)
  const kept = await node.client.importLocal({ paths: [path], as: 'me/kept', private: true })
  expect(await node.client.waitJob(kept, { intervalMs: 1 })).toMatchObject({ state: 'done' })
  const [job] = (await node.client.jobs()).filter(({ kind }) => kind === 'import-bt')
  await node.client.cancelJob(job!.id)
  const { isCut, body } = await pull
  expect([isCut, body.length]).toEqual([true, 0])
})
