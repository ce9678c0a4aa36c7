// Clients of the OCI mirror on demand ask for what its owner does not want to have or show: nothing changes.
import { unlinkSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sharedByFile } from '../support/daemon.ts'
import { eventually, MIB, Node, weights } from '../swarm/nodes.ts'
import { ask, beginImport, digestOf, gated, mirroring } from './arriving.ts'

const filesOf = (quant: string, seed: number) => ({
  [`model-${quant}.gguf`]: weights(MIB + 9, seed),
  'config.json': JSON.stringify({ model_type: 'llama', seed })
})
const NEW = filesOf('q8_0', 71)
const OLD = filesOf('q8_0', 72)
const OTHER = filesOf('q4_0', 73)
const NEW_WEIGHTS = digestOf(NEW['model-q8_0.gguf'] as Buffer)
const OLD_WEIGHTS = digestOf(OLD['model-q8_0.gguf'] as Buffer)
const LONG = { timeout: 180_000 }

const source = sharedByFile(async (cleanUp) => {
  const node = await Node.start({}, cleanUp)
  return { share: await node.publish(NEW, 'acme/model'), other: await node.publish(OTHER, 'acme/other') }
})

const manifestOf = (node: Node): Promise<string> =>
  node.client.resolve('svc:///acme/model:q8_0').then(
    ({ manifestDigest }) => manifestDigest,
    ({ code }) => code
  )

test('an import that its owner cancelled is not resumed for a client, and replaces nothing', LONG, async () => {
  const { share } = await source()
  const gate = await gated(share)
  const node = await mirroring({ on_demand: true })
  const old = await node.importFiles(OLD, 'acme/model')
  const job = await beginImport(node, gate, share)
  expect(await node.client.cancelJob(job.id)).toMatchObject({ error: { code: 'E_ABORTED' } })
  gate.open()
  for (const path of ['manifests/q4_0', 'manifests/nonsense', `blobs/${NEW_WEIGHTS}`])
    expect(await ask(node, path), path).toMatchObject({ status: 404 })
  expect(await manifestOf(node)).toBe(old)
  expect((await node.client.jobs()).filter(({ kind }) => kind === 'import-bt')).toHaveLength(1)
})

test('a name that its owner removed does not come back through clients', LONG, async () => {
  const { share } = await source()
  const gate = await gated(share)
  const first = await mirroring({})
  await beginImport(first, gate, share)
  await first.stop()

  const node = await mirroring({ on_demand: true }, first.folder)
  // no client can mean it: the name of its weights says which quant it is
  for (const tag of ['nonsense', 'q4_0'])
    expect(await ask(node, `manifests/${tag}`), tag).toMatchObject({ status: 404 })
  const begun = async () => (await node.client.jobs()).filter(({ interrupted }) => interrupted !== true)
  expect(await begun()).toEqual([])
  const reading = ask(node, `blobs/${NEW_WEIGHTS}`)
  reading.catch(() => undefined)
  const [job] = await eventually(async () => {
    const jobs = await begun()
    return jobs.length > 0 ? jobs : undefined
  })
  expect(await node.client.removeModel({ ns: 'acme', name: 'model' })).toMatchObject({ quants: [], tags: [] })
  expect(await ask(node, 'manifests/q8_0')).toMatchObject({ status: 404 })
  // nor does its fetch continue
  expect(await node.done(job!)).toMatchObject({ state: 'failed', error: { code: 'E_ABORTED' } })
  gate.open()
  await reading
  expect((await node.client.status()).swarm.torrents).toEqual([])
  expect(await manifestOf(node)).toBe('E_UNKNOWN_REF')
  for (const path of ['manifests/q8_0', `blobs/${NEW_WEIGHTS}`])
    expect(await ask(node, path), path).toMatchObject({ status: 404 })
  await expect(node.client.removeModel({ ns: 'acme', name: 'model' })).rejects.toMatchObject({ code: 'E_UNKNOWN_REF' })

  // an import of the same bytes under another name, and its end, change nothing for the first name
  await node.importFiles(NEW, 'me/own')
  expect(await ask(node, 'manifests/q8_0')).toMatchObject({ status: 404 })
})

test('an interrupted import does not name an artifact that arrives otherwise', LONG, async () => {
  const { share } = await source()
  const gate = await gated(share)
  const first = await mirroring({})
  await beginImport(first, gate, share)
  await first.stop()
  const node = await mirroring({ on_demand: true }, first.folder)
  expect(await node.importFiles(NEW, 'me/own')).toBe(share.manifestDigest)
  for (const path of ['manifests/q8_0', `blobs/${NEW_WEIGHTS}`])
    expect(await ask(node, path), path).toMatchObject({ status: 404 })
})

test('an incomplete artifact that no job fetches is not described', LONG, async () => {
  const node = await mirroring({})
  await node.importFiles(OLD, 'acme/model')
  unlinkSync(node.blobPath(OLD_WEIGHTS))
  for (const path of ['manifests/q8_0', `blobs/${OLD_WEIGHTS}`])
    expect(await ask(node, path), path).toMatchObject({ status: 404 })
})

test('a stalled quant delays neither another quant nor an unknown tag', LONG, async () => {
  const { share, other } = await source()
  const [gate, otherGate] = [await gated(share), await gated(other)]
  const node = await mirroring({})
  await beginImport(node, gate, share)
  await beginImport(node, otherGate, other)
  otherGate.open((path) => !path.endsWith('.gguf'))
  const manifest = await ask(node, 'manifests/q4_0')
  expect(manifest.status).toBe(200)
  const { config } = JSON.parse(manifest.body.toString()) as { config: { digest: string } }
  expect(await ask(node, `blobs/${config.digest}`)).toMatchObject({ status: 200 })
  expect(await ask(node, 'manifests/q5_0')).toMatchObject({ status: 404 })
})

test('a file of two artifacts is served from either', LONG, async () => {
  const node = await mirroring({ on_demand: true }, undefined, 1)
  const projector = weights(MIB, 74)
  await node.importFiles({ ...OLD, ...OTHER, 'mmproj-f16.gguf': projector }, 'acme/model')
  unlinkSync(node.blobPath(digestOf(projector)))
  // nobody has it; after a try for one artifact, there is one for the other
  for (let tries = 0; tries < 2; tries++)
    expect(await ask(node, `blobs/${digestOf(projector)}`)).toMatchObject({ status: 200, isCut: true })
})
