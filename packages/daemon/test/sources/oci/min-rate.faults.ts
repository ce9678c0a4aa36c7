// Registries that drip, at the lengths of the product: some seven minutes, nearly all of them waiting.
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Job } from '@svc/client/protocol'
import { expect, onTestFinished, test } from 'vitest'
import { LANE_WIDTHS } from '../../../src/jobs/lanes.ts'
import { Node, weights } from '../../swarm/nodes.ts'

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const EMPTY = Buffer.from('{}')
const FILE = weights(400_007)
const WEIGHTS_TYPE = 'application/vnd.cncf.model.weight.v1.raw'

/** A registry with one artifact in each repository; what lies in `drip-…` comes by single bytes. */
async function dripping(): Promise<{ readonly address: string; readonly drips: () => number }> {
  let drips = 0
  const manifestOf = (repository: string): Buffer => {
    const bytes = repository.startsWith('drip') ? Buffer.concat([FILE, Buffer.from(repository)]) : FILE
    return Buffer.from(
      JSON.stringify({
        schemaVersion: 2,
        mediaType: 'application/vnd.oci.image.manifest.v1+json',
        artifactType: 'application/vnd.cncf.model.manifest.v1+json',
        config: { mediaType: 'application/vnd.cncf.model.config.v1+json', digest: digestOf(EMPTY), size: EMPTY.length },
        layers: [
          {
            mediaType: WEIGHTS_TYPE,
            digest: digestOf(bytes),
            size: bytes.length,
            annotations: { 'org.cncf.model.filepath': 'm-q8_0.gguf' }
          }
        ]
      })
    )
  }
  const answer = ({ url, method }: IncomingMessage, response: ServerResponse): void => {
    const [, repository = '', kind] = /^\/v2\/([^/]+)\/(manifests|blobs)\//.exec(url!) ?? []
    if (kind === 'manifests') {
      const bytes = manifestOf(repository)
      response.writeHead(200, {
        'content-type': 'application/vnd.oci.image.manifest.v1+json',
        'docker-content-digest': digestOf(bytes),
        'content-length': bytes.length
      })
      return void response.end(method === 'HEAD' ? undefined : bytes)
    }
    if (kind !== 'blobs') return void response.writeHead(url === '/v2/' ? 200 : 404).end()
    if (url!.endsWith(digestOf(EMPTY))) return void response.writeHead(200).end(EMPTY)
    const isDrip = repository.startsWith('drip')
    response.writeHead(200, { 'content-length': FILE.length + (isDrip ? repository.length : 0) })
    if (method === 'HEAD') return void response.end()
    if (!isDrip) return void response.end(FILE)
    drips += 1
    const timer = setInterval(() => response.write('G'), 100)
    response.on('close', () => clearInterval(timer))
  }
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise<void>((resolve) => server.once('listening', () => resolve()))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, drips: () => drips }
}

test('imports from slow registries free their lanes for the next ones', {
  timeout: 1_800_000
}, async () => {
  const registry = await dripping()
  const node = await Node.start()
  const importOf = (name: string): Promise<Job> =>
    node.client.importOci({ image: `${registry.address}/${name}:v1`, as: `me/${name}`, plainHttp: true })
  const dripped: Job[] = []
  for (let n = 0; n < LANE_WIDTHS['import-oci']; n++) dripped.push(await importOf(`drip-${n}`))
  await expect.poll(registry.drips, { timeout: 60_000 }).toBe(dripped.length)
  const begun = performance.now()
  const behind = await node.client.waitJob(await importOf('whole'), { intervalMs: 100 })
  const seconds = Math.round((performance.now() - begun) / 1_000)
  expect(behind).toMatchObject({ state: 'done' })
  await node.expectWhole(behind.result!.manifests[0]!)
  for (const job of dripped)
    expect(await node.client.waitJob(job, { intervalMs: 100 })).toMatchObject({
      state: 'failed',
      error: { code: 'E_SOURCE_UNAVAILABLE' }
    })
  console.log(`the import behind was done after ${seconds} s; the drips were asked for ${registry.drips()} times`)
})
