import { createHash, randomBytes } from 'node:crypto'
import { encodeBencode } from '@svc/metainfo'
import { V1Swarm } from '@svc/swarm-v1'
import { StartedThreads } from '@svc/testkit/threads'
import { expect, onTestFinished, test } from 'vitest'

const CONTENT = randomBytes(16_384)
const INFO = encodeBencode({
  length: CONTENT.length,
  name: 'm.gguf',
  'piece length': 16_384,
  pieces: createHash('sha1').update(CONTENT).digest()
})
const INFOHASH = createHash('sha1').update(INFO).digest('hex')

async function swarm() {
  const faults: string[] = []
  const client = await V1Swarm.start({
    peerAddress: { host: '127.0.0.1', port: 0 },
    dht: false,
    policy: 'machine',
    uploadLimitBytesPerSecond: 0,
    onFault: ({ thread, count }) => void faults.push(`${thread} ${count}`)
  })
  onTestFinished(() => client.close())
  return { client, faults }
}

const joined = { infohash: INFOHASH, info: INFO, trackers: [], metadataTimeoutMs: 10_000 }

test('a thread in an endless loop is reported once, restarted on the same port, and seeds again', {
  timeout: 180_000
}, async () => {
  const threads = new StartedThreads()
  onTestFinished(() => threads.stop())
  const { client, faults } = await swarm()
  threads.stop()
  const seed = client.join({
    ...joined,
    peers: [],
    complete: true,
    open: async () => ({
      has: () => true,
      write: async () => {},
      read: async (_, at, target) => target.set(CONTENT.subarray(at, at + target.length))
    })
  })
  await seed.done
  const { port } = client.address
  await threads.hang('bittorrent-v1')
  await expect.poll(() => faults, { timeout: 120_000 }).toEqual(['bittorrent-v1 1'])

  const bytes = Buffer.alloc(CONTENT.length)
  let written = false
  const leech = (await swarm()).client.join({
    ...joined,
    peers: [`127.0.0.1:${port}`],
    open: async () => ({
      has: () => written,
      read: async (_, at, target) => target.set(bytes.subarray(at, at + target.length)),
      write: async (_, at, block) => {
        bytes.set(block, at)
        written = true
      }
    })
  })
  await leech.ready
  // it was dialled while nobody listened, perhaps
  const again = setInterval(() => leech.addPeer(`127.0.0.1:${port}`), 500)
  await leech.done
  clearInterval(again)
  expect(bytes.equals(CONTENT)).toBe(true)
  expect(client.address.port).toBe(port)
  expect(faults).toEqual(['bittorrent-v1 1'])
})
