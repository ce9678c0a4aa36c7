// One limit for all ways in. The sources are a hub, and the registry, the webseed and the peer listener of a daemon.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job, ShareResult } from '@svc/client/protocol'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, test } from 'vitest'
import { BUILTIN_NETWORKS } from '../../src/app/networks.ts'
import { sharedByFile } from '../support/daemon.ts'
import { contentOf, documentsOnly, startWebseed } from '../swarm/fake-webseed.ts'
import { eventually, MIB, modelAlone, Node, pinned, weights } from '../swarm/nodes.ts'

const SIZE = 6 * MIB

interface Source {
  readonly hub: string
  readonly oci: string
  readonly share: ShareResult
}

/** A model for each of them: what is fetched twice at once comes once. */
const source = sharedByFile(async (cleanUp): Promise<Source> => {
  const hub = await startFakeHub()
  cleanUp(() => hub.close())
  const files = [{ path: 'model-q8_0.gguf', content: weights(SIZE, 90) }]
  hub.commit({ id: 'me/hub', files })
  const node = await Node.start({ mirror: { oci_addr: '127.0.0.1:0' } }, cleanUp)
  await node.importFiles({ 'model-q8_0.gguf': weights(SIZE, 92) }, 'me/other')
  const share = modelAlone(await node.publish({ 'model-q8_0.gguf': weights(SIZE, 91) }))
  const facts = JSON.parse(readFileSync(join(node.folder, 'runtime.json'), 'utf8'))
  return { hub: hub.endpoint, oci: facts.ociMirrorAddress, share }
})

type Way = 'hub' | 'registry' | 'webseed' | 'peer'

const WAYS: Readonly<Record<Way, (node: Node, source: Source) => Promise<Job>>> = {
  hub: ({ client }) => client.importHf({ repo: 'me/hub' }),
  registry: ({ client }, { oci }) => client.importOci({ image: `${oci}/me/other:q8_0`, as: 'me/oci' }),
  webseed: ({ client }, { share }) => client.importBt(pinned(share, { peers: [] })),
  peer: async ({ client }, { share }) => {
    const { url } = await startWebseed(await contentOf(share), documentsOnly)
    return client.importBt(pinned(share, { webseeds: [url] }))
  }
}

async function reader(downloadLimit: number): Promise<Node> {
  const { hub } = await source()
  const more = { networks: { ...BUILTIN_NETWORKS } }
  return Node.start({ hub: { endpoint: hub }, network: { download_limit: downloadLimit }, more })
}

/** Bytes per second until the job is done. */
async function rateOf(node: Node, job: Job): Promise<number> {
  const started = performance.now()
  expect(await node.done(job)).toMatchObject({ state: 'done' })
  return SIZE / ((performance.now() - started) / 1000)
}

test.each(Object.keys(WAYS) as Way[])('a download limit holds for a %s', async (way) => {
  const node = await reader(2 * MIB)
  const rate = await rateOf(node, await WAYS[way](node, await source()))
  expect(rate).toBeLessThan(2.4 * MIB)
  expect(rate).toBeGreaterThan(1.2 * MIB)
})

test('an upload limit that is set while a daemon runs holds for web clients, too', async () => {
  const node = await Node.start()
  const { webseeds, name } = await node.publish({ 'model-q8_0.gguf': weights(2 * MIB, 93) })
  await node.client.limitUpload({ bytesPerSecond: MIB })
  const started = performance.now()
  const url = `${webseeds[0]}${name}/model-q8_0.gguf`
  expect((await (await fetch(url)).arrayBuffer()).byteLength).toBe(2 * MIB)
  expect(performance.now() - started).toBeGreaterThan(1_200)
})

test('several ways in share the limit, and take it as it is changed', async () => {
  const node = await reader(MIB)
  const from = await source()
  const jobs = [await WAYS.hub(node, from), await WAYS.registry(node, from), await WAYS.peer(node, from)]
  const bytesOf = async (): Promise<number[]> => {
    const found = await Promise.all(jobs.map(({ id }) => node.client.job(id)))
    expect(found.filter(({ state }) => state === 'failed')).toEqual([])
    return found.map(({ bytesDone = 0 }) => bytesDone)
  }
  const sum = (bytes: readonly number[]): number => bytes.reduce((total, each) => total + each, 0)
  /** Bytes per second of all and of each, until so many more have come. */
  const measured = async (bytes: number) => {
    const before = await bytesOf()
    const started = performance.now()
    const after = await eventually(async () => {
      const now = await bytesOf()
      return sum(now) - sum(before) >= bytes ? now : undefined
    })
    const seconds = (performance.now() - started) / 1000
    const each = after.map((now, index) => (now - before[index]!) / seconds)
    return { all: sum(each), each }
  }
  await eventually(async () => (Math.min(...(await bytesOf())) > 0 ? true : undefined))
  const slow = await measured(4 * MIB)
  expect(slow.all).toBeLessThan(1.3 * MIB)
  expect(slow.all).toBeGreaterThan(0.7 * MIB)
  expect(Math.min(...slow.each)).toBeGreaterThan(0.1 * MIB)

  expect(await node.client.limitDownload({ bytesPerSecond: 3 * MIB })).toEqual({ bytesPerSecond: 3 * MIB })
  expect((await node.client.status()).downloadLimitBytesPerSecond).toBe(3 * MIB)
  const faster = await measured(5 * MIB)
  expect(faster.all).toBeLessThan(3.9 * MIB)
  expect(faster.all).toBeGreaterThan(1.8 * MIB)

  await node.client.limitDownload({ bytesPerSecond: 0 })
  expect((await node.client.status()).downloadLimitBytesPerSecond).toBeUndefined()
  const started = performance.now()
  for (const job of jobs) expect(await node.done(job)).toMatchObject({ state: 'done' })
  // the rest would take two seconds under the last limit
  expect(performance.now() - started).toBeLessThan(1_500)
})
