// Files beside a model on its owner's disk that no loader reads are in no document of a mirror.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MIB, Node, weights } from '../swarm/nodes.ts'
import { ask, digestOf } from './arriving.ts'

test("the OCI mirror has the companions that loaders read, and none of the owner's other files", async () => {
  const node = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } })
  const files = {
    'model-q8_0.gguf': weights(MIB + 9, 63),
    'generation_config.json': Buffer.from('{}'),
    'notes.txt': Buffer.from('nobody’s business')
  }
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(node.folder, name), bytes)
  const paths = Object.keys(files).map((name) => join(node.folder, name))
  const job = await node.client.importLocal({ paths, as: 'acme/model' })
  expect(await node.client.waitJob(job, { intervalMs: 1 })).toMatchObject({ state: 'done' })
  // the owner has it: a view of the owner's is there before one is lent
  expect((await node.client.makeView({ ref: 'svc:///acme/model:q8_0' })).files.map(({ name }) => name)).toContain(
    'notes.txt'
  )
  const { status, body } = await ask(node, 'manifests/q8_0')
  expect(status).toBe(200)
  const given = (name: keyof typeof files): boolean => body.includes(digestOf(files[name]))
  expect([given('generation_config.json'), given('notes.txt')]).toEqual([true, false])
  expect(body.toString()).not.toContain('notes.txt')
  expect(await ask(node, `blobs/${digestOf(files['generation_config.json'])}`)).toMatchObject({ status: 200 })
  expect(await ask(node, `blobs/${digestOf(files['notes.txt'])}`)).toMatchObject({ status: 404 })
})
