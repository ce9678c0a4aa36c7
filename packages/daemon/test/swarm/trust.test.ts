// Rules [[trust]] for a pinned import: a model that is refused is nowhere to be seen, not while it comes and not after a stop.
import type { ServerResponse } from 'node:http'
import type { ShareResult } from '@svc/client/protocol'
import { type Manifest, parseManifest, sealManifest, torrentOf } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { expect, test } from 'vitest'
import { ServedModels } from '../../../mirror/src/served-models.ts'
import { ruleFor } from '../../../sharing/src/pinned-companions.ts'
import { sharedByFile, temporaryFolder } from '../support/daemon.ts'
import { FOLDER, SPOILT, signerIn } from '../support/signed-models.ts'
import { contentOf, kindOf, startWebseed } from './fake-webseed.ts'
import { eventually, Node, pinned } from './nodes.ts'

const served = sharedByFile(async (cleanUp) => {
  const signer = signerIn(temporaryFolder(cleanUp))
  const node = await Node.start({}, cleanUp)
  const good = await node.publish(signer.sign(FOLDER))
  const trust = (mode: string) => [{ names: ['their/*'], mode, keys: [signer.keyFile] }]
  return { node, signer, good, trust }
})

/** Nothing of the artifact can be found, opened or fetched from the node. */
async function expectNothing(node: Node, { manifestDigest }: ShareResult): Promise<void> {
  expect((await node.client.models()).namespaces).toEqual([])
  expect(node.blobs()).not.toContain(manifestDigest)
  const opened = await node.client.open(`svc:///their/model@${manifestDigest}`)
  expect(opened).toMatchObject({ files: [], missing: [manifestDigest] })
  const { swarm } = await node.client.status()
  expect(swarm).toMatchObject({ torrents: [], seeding: 0 })
  const { needed } = node.running.context
  expect(await needed.has(manifestDigest as Sha256Digest)).toBe(false)
}

/** Answers as another webseed does. */
async function passedOn(url: string, range: string | undefined, response: ServerResponse): Promise<void> {
  const answer = await fetch(url, range === undefined ? {} : { headers: { range } })
  const contentRange = answer.headers.get('content-range')
  response.writeHead(answer.status, contentRange === null ? {} : { 'Content-Range': contentRange })
  response.end(Buffer.from(await answer.arrayBuffer()))
}

test.each([
  ['peers', { webseeds: [], manifestFromPeers: true }],
  ['a webseed', { peers: [] }]
])('by %s: a signed model passes, gets its name, and is served to others', async (_, hints) => {
  const { good, trust } = await served()
  const node = await Node.start({ trust: trust('require') })
  const job = await node.importBt(pinned(good, { ...hints, as: 'their/model' }))
  expect(job).toMatchObject({ state: 'done', result: { companions: good.companions!.digest, quants: ['bf16'] } })
  expect(job.result).not.toHaveProperty('warnings')
  const { companions } = await node.client.open('svc:///their/model:bf16')
  expect(companions!.files.map(({ path }) => path)).toContain('model.sig')
  await node.announced(good.manifestDigest)
  await node.expectWhole(good.manifestDigest)
})

test.each(Object.entries(SPOILT))('%s: refused, and nothing of it is visible, also after a start', async (_, spoil) => {
  const { signer, trust } = await served()
  const { names, files } = spoil(signer)
  const source = await Node.start()
  const share = await source.publish(files)
  const node = await Node.start({ trust: trust('require') })
  const job = await node.importBt(pinned(share, { as: 'their/model' }))
  expect(job).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  expect(job.error!.message).toContain('[[trust]] 1')
  expect(job.error!.message).toContain(names)
  await expectNothing(node, share)
  await node.stop()
  await expectNothing(await Node.start({ folder: node.folder, trust: trust('require') }), share)
})

test('is invisible while it arrives and after an interruption; the next request completes it', async () => {
  const { good, trust } = await served()
  let isOpen = false
  const isWeights = (path: string): boolean => kindOf(path) === 'file' && path.startsWith(`/${good.name}/`)
  const webseed = await startWebseed(await contentOf(good), (path, { headers }, response, bytes) => {
    if (bytes !== undefined) return !isOpen && isWeights(path)
    void passedOn(good.webseeds[0]! + path.slice(1), headers.range, response)
    return true
  })
  const node = await Node.start({ trust: trust('require') })
  const wanted = pinned(good, { webseeds: [webseed.url], peers: [], as: 'their/model' })
  await node.client.importBt(wanted)
  await eventually(() => (webseed.requests.some(isWeights) ? true : undefined))
  expect((await node.client.models()).namespaces).toEqual([])
  expect(node.blobs()).not.toContain(good.manifestDigest)
  await node.stop()
  isOpen = true
  const again = await Node.start({ folder: node.folder, trust: trust('require') })
  await expectNothing(again, good)
  expect(await again.ensure(good.manifestDigest)).toMatchObject({ state: 'failed' })
  expect(await again.importBt(wanted)).toMatchObject({ state: 'done', result: { quants: ['bf16'] } })
  await again.announced(good.manifestDigest)
})

test('without a signature no weights are fetched', async () => {
  const { signer, trust } = await served()
  const source = await Node.start()
  const share = await source.publish(SPOILT['no signature']!(signer).files)
  const webseed = await startWebseed(await contentOf(share))
  const node = await Node.start({ trust: trust('require') })
  const job = await node.importBt(pinned(share, { webseeds: [webseed.url], as: 'their/model' }))
  expect(job).toMatchObject({ state: 'failed', error: { message: expect.stringContaining('model.sig') } })
  expect(webseed.requests.filter((path) => path.endsWith('.safetensors'))).toEqual([])
})

test('a pinned model without a local name is matched by the name at its source', async () => {
  const { trust } = await served()
  const { context } = (await Node.start({ trust: trust('require') })).running
  const of = (repo?: string): Manifest =>
    ({ annotations: repo === undefined ? {} : { 'svc.hf.repo': repo } }) as Manifest
  expect(ruleFor(context.trust, undefined, of('Their/Model'))).toMatchObject({ mode: 'require' })
  expect(ruleFor(context.trust, undefined, of('Other/Model'))).toBeUndefined()
  expect(ruleFor(context.trust, undefined, of())).toBeUndefined()
})

test('the name in a pinned manifest relaxes no rule', async () => {
  const { good, signer } = await served()
  const content = await contentOf(good)
  const [, bytes] = [...content].find(([path]) => kindOf(path) === 'manifest')!
  const { files, annotations } = parseManifest(bytes)
  const sealed = sealManifest(files, { ...annotations, 'svc.hf.repo': 'Lax/Model' })
  const { infohashText: infohash, name } = torrentOf(sealed)
  const manifestDigest = sealed.digest
  const own = new Map([...content].map(([path, bytes]) => [path.replace(good.name, name), bytes]))
  own.set(`/${name}/manifest/${manifestDigest.replace(':', '-')}`, Buffer.from(sealed.bytes))
  own.set(
    `/bt/piece-layers/${infohash.slice('btmh:1220'.length)}`,
    content.get(`/bt/piece-layers/${good.infohash.slice('btmh:1220'.length)}`)!
  )
  const webseed = await startWebseed(own)
  const trust = [
    { names: ['lax/*'], mode: 'off' },
    { names: ['*'], mode: 'require', keys: [signer.keyFile] }
  ]
  const node = await Node.start({ trust })
  for (const more of [{}, { as: 'me/model' }]) {
    const job = await node.importBt({ infohash, manifestDigest, webseeds: [webseed.url], ...more })
    expect(job).toMatchObject({
      state: 'failed',
      error: { code: 'E_NOT_IMPORTABLE', message: expect.stringContaining('[[trust]] 2') }
    })
  }
})

test('without its companions a pinned import has no signature', async () => {
  const { good, trust } = await served()
  const { companions: _, ...alone } = pinned(good, { as: 'their/model' })
  const strict = await Node.start({ trust: trust('require') })
  const refused = await strict.importBt(alone)
  expect(refused).toMatchObject({ state: 'failed', error: { code: 'E_NOT_IMPORTABLE' } })
  expect(refused.error!.message).toContain('model.sig')
  await expectNothing(strict, good)
  const warned = await Node.start({ trust: trust('warn') })
  const job = await warned.importBt(alone)
  expect(job).toMatchObject({ state: 'done', result: { warnings: [expect.stringContaining('model.sig')] } })
})

test('warn lets a changed model in, and names the file', async () => {
  const { signer, trust } = await served()
  const { files } = SPOILT['a flipped byte in the weights']!(signer)
  const source = await Node.start()
  const share = await source.publish(files)
  const node = await Node.start({ trust: trust('warn') })
  const job = await node.importBt(pinned(share, { as: 'their/model' }))
  expect(job).toMatchObject({ state: 'done', result: { warnings: [expect.stringContaining('model.safetensors')] } })
})

test('an import that began before the rule is not shown by a mirror while it comes', async () => {
  const { good, trust } = await served()
  const webseed = await startWebseed(await contentOf(good), (path) => path.endsWith('.safetensors'))
  const { companions: _, ...alone } = pinned(good, { webseeds: [webseed.url], peers: [], as: 'their/model' })
  const node = await Node.start()
  await node.client.importBt(alone)
  await eventually(() => (webseed.requests.some((path) => path.endsWith('.safetensors')) ? true : undefined))
  await node.stop()
  const shown = async (mode: string): Promise<readonly Sha256Digest[]> => {
    const again = await Node.start({ folder: node.folder, trust: trust(mode) })
    const served = new ServedModels(again.running.context)
    const awaited = await served.awaited('their/model', 'oci-mirror')
    await again.stop()
    return awaited.map(({ manifest }) => manifest)
  }
  expect(await shown('warn')).toEqual([good.manifestDigest])
  expect(await shown('require')).toEqual([])
})
