import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Job, ShareResult } from '@svc/client/protocol'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { type SpawnedDaemon, spawnDaemon } from '../support/process.ts'
import { contentOf, documentsOnly, kindOf, startWebseed } from './fake-webseed.ts'
import { eventually, MIB, Node, pinned, refOf, weights } from './nodes.ts'

const SIZE = 12 * MIB
const DURABLE = 4 * MIB

async function spawned(folder: string): Promise<SpawnedDaemon> {
  const config = join(folder, 'config.toml')
  writeFileSync(config, '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\nfill_timeout = 60\n')
  return spawnDaemon({
    folder,
    args: ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', config]
  })
}

/** Bytes that the journals in `incoming` vouch for: what a restart can go on with. */
function durableBytes(folder: string): number {
  const incoming = join(folder, 'root', 'incoming')
  let bytes = 0
  for (const name of readdirSync(incoming).filter((each) => /^[0-9a-f]{32}\.json$/.test(each))) {
    const { ranges } = JSON.parse(readFileSync(join(incoming, name), 'utf8')) as { ranges: [number, number][] }
    for (const [start, end] of ranges) bytes += end - start
  }
  return bytes
}

/** Starts an import in a process of its own and kills it with -9 in the middle. */
async function killedInTheMiddle(
  folder: string,
  share: ShareResult,
  hints: { webseeds: string[]; peers: string[] }
): Promise<number> {
  const daemon = await spawned(folder)
  const { status, body } = await daemon.post('/v1/import/bt', pinned(share, hints))
  expect(status).toBe(201)
  await eventually(() => (durableBytes(folder) >= DURABLE ? true : undefined))
  expect(((await daemon.get(`/v1/jobs/${body.id}`)).body as Job).state).toBe('fetching')
  daemon.child.kill('SIGKILL')
  await daemon.ended
  return durableBytes(folder)
}

const uploaded = async (node: Node): Promise<number> => (await node.client.status()).swarm.torrents[0]!.uploadedBytes

test('after kill -9 in a fill, ensure does not request verified pieces again', async () => {
  const seeder = await Node.start({ swarm: { upload_limit: MIB } })
  const share = await seeder.publish({ 'model-q8_0.gguf': weights(SIZE, 31) })
  const documents = await startWebseed(await contentOf(share), documentsOnly)
  const folder = temporaryFolder()
  const durable = await killedInTheMiddle(folder, share, { webseeds: [documents.url], peers: [...share.peers] })
  const before = await uploaded(seeder)

  const again = await spawned(folder)
  const { body } = await again.post('/v1/ensure', { ref: refOf(share.manifestDigest) })
  expect(await again.finished(body)).toMatchObject({ kind: 'ensure', state: 'done' })
  expect((await uploaded(seeder)) - before).toBeLessThan(SIZE - durable + MIB)
  expect(await again.verify(share.manifestDigest)).toMatchObject({ state: 'done' })
})

test('after kill -9, a second import from webseeds does not request verified pieces again', async () => {
  const seeder = await Node.start()
  const share = await seeder.publish({ 'model-q8_0.gguf': weights(SIZE, 32) })
  const content = await contentOf(share)
  // gives the file in small steps, never all of it
  let sent = 0
  const slow = await startWebseed(content, (path, request, response, bytes) => {
    if (kindOf(path) !== 'file' || bytes === undefined || bytes.length < MIB) return false
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!
    response.writeHead(206, {
      'Content-Length': Number(end) + 1 - Number(start),
      'Content-Range': `bytes ${start}-${end}/${bytes.length}`
    })
    let at = Number(start)
    const timer = setInterval(() => {
      if (response.destroyed || at > Number(end)) return void clearInterval(timer)
      const part = bytes.subarray(at, Math.min(at + MIB / 8, Number(end) + 1))
      at += part.length
      sent += part.length
      response.write(part)
      if (at > Number(end)) response.end()
    }, 100)
    return true
  })
  const folder = temporaryFolder()
  const durable = await killedInTheMiddle(folder, share, { webseeds: [slow.url], peers: [] })

  const before = sent
  const again = await spawned(folder)
  const { body } = await again.post('/v1/import/bt', pinned(share, { webseeds: [slow.url], peers: [] }))
  expect(await again.finished(body)).toMatchObject({ kind: 'import-bt', state: 'done' })
  expect(sent - before).toBeLessThan(SIZE - durable + MIB)
  expect(await again.verify(share.manifestDigest)).toMatchObject({ state: 'done' })
})

test('a killed import leaves what ensure needs: manifest, layers and hints, even with only webseeds', async () => {
  const seeder = await Node.start()
  const share = await seeder.publish({ 'model-q8_0.gguf': weights(SIZE, 33) })
  const content = await contentOf(share)
  const withheld = await startWebseed(content, documentsOnly)
  const folder = temporaryFolder()
  const daemon = await spawned(folder)
  await daemon.post(
    '/v1/import/bt',
    pinned(share, { webseeds: [withheld.url, share.webseeds[0]!], peers: ['127.0.0.1:9'] })
  )
  await eventually(() => (withheld.requests.some((path) => kindOf(path) === 'file') ? true : undefined))
  daemon.child.kill('SIGKILL')
  await daemon.ended

  const again = await spawned(folder)
  const { body } = await again.post('/v1/ensure', { ref: refOf(share.manifestDigest) })
  expect(await again.finished(body)).toMatchObject({ kind: 'ensure', state: 'done' })
  expect(withheld.requests.filter((path) => kindOf(path) === 'layers')).toHaveLength(1)
})
