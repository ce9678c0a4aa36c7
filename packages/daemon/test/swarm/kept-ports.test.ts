import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { Node, weights } from './nodes.ts'

const mirror = { hub_addr: '127.0.0.1:0', oci_addr: '127.0.0.1:0', s3_addr: '127.0.0.1:0' }
const start = (folder: string): Promise<Node> => Node.start({ folder, mirror })

function listening({ folder }: Node) {
  const facts = JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8'))
  const { peer, webseed, hubMirrorAddress, ociMirrorAddress, s3MirrorAddress } = facts
  return { peer, webseed, hubMirrorAddress, ociMirrorAddress, s3MirrorAddress }
}

test('listeners have the ports that they had, and what was shared before a restart can be fetched after it', async () => {
  const folder = temporaryFolder()
  const before = await start(folder)
  const shared = await before.publish({ 'model-q8_0.gguf': weights(200_000, 71) })
  const addresses = listening(before)
  expect(new Set(Object.values(addresses)).size).toBe(5)
  await before.stop()

  const after = await start(folder)
  expect(listening(after)).toEqual(addresses)
  const other = await Node.start()
  // what the command of svc share sends
  const { magnet, manifestDigest } = shared
  expect(await other.importBt({ magnet, manifestDigest })).toMatchObject({ state: 'done' })
})

test('a port that another program has meanwhile is replaced, as is a damaged note of one', async () => {
  const folder = temporaryFolder()
  const first = await start(folder)
  const was = listening(first)
  await first.stop()
  const taker = createServer().listen(Number(was.peer.split(':')[1]), '127.0.0.1')
  await once(taker, 'listening')
  writeFileSync(join(folder, 'root/state/ports/hub.json'), '{"port": 1}\n')

  const second = await start(folder)
  const meanwhile = listening(second)
  expect(meanwhile).toEqual({ ...was, peer: meanwhile.peer, hubMirrorAddress: meanwhile.hubMirrorAddress })
  expect(meanwhile.peer).not.toBe(was.peer)
  await second.stop()
  taker.close()

  expect(listening(await start(folder))).toEqual(meanwhile)
})
