import { createCipheriv, createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openDiskStore } from '@svc/cas'
import { createClient } from '@svc/client'
import { startFakeXet } from '@svc/testkit/fake-xet'
import { expect, onTestFinished, test } from 'vitest'
import { durableBytes, spawnDaemon } from './daemon-process.ts'
import { fakeHub, tempFolder, undoAfterTests } from './fixtures.ts'

undoAfterTests()

const MIB = 2 ** 20
const PATH = 'large-q8_0.gguf'
const INSERTED_BYTES = 9_024
/** Bytes that cannot be compressed. */
const NOISE = createCipheriv('aes-128-ctr', Buffer.alloc(16), Buffer.alloc(16)).update(Buffer.alloc(256 * MIB))
const TEMPLATE = Buffer.from('{%- for message in messages %}'.repeat(301)).subarray(0, INSERTED_BYTES)
const NEW = Buffer.concat([NOISE.subarray(0, 300_000), TEMPLATE, NOISE.subarray(300_000)])
const DIGEST = `sha256:${createHash('sha256').update(NEW).digest('hex')}` as const
const repoOf = (content: Buffer) => ({
  id: 'Org/Large',
  files: [
    { path: PATH, content },
    { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }
  ]
})

/** A daemon of its own, which has the first commit, in front of a hub that has a second one. */
async function setUp() {
  const root = await tempFolder()
  await writeFile(join(root, 'config.toml'), '[swarm]\nenabled = false\n')
  const xet = await startFakeXet()
  onTestFinished(() => xet.close())
  const fake = await fakeHub({ repos: [repoOf(NOISE)], tokens: ['hf_good'], xet })
  const socketPath = join(root, 's.sock')
  const client = createClient({ socketPath })
  const start = () => spawnDaemon(root, socketPath, fake)
  const child = await start()
  const bring = async () => client.importHf({ repo: 'Org/Large' })
  const wait = async (id: string) => client.waitJob(await client.job(id), { intervalMs: 100 })
  expect(await wait((await bring()).id)).toMatchObject({ state: 'done' })
  fake.commit(repoOf(NEW))
  const before = fake.bytesSent.get(PATH)!
  /** What the hub's storage and the service of chunks have sent since. */
  const travelled = (): number => fake.bytesSent.get(PATH)! - before + xet.socketBytes()
  const verified = async (): Promise<string> => {
    const store = await openDiskStore({ root: join(root, 'store') })
    try {
      return (await store.verify(DIGEST as never)).status
    } finally {
      await store.close()
    }
  }
  return { root, xet, fake, client, child, start, bring, wait, travelled, verified }
}

test('9,024 bytes more in the metadata of 256 MiB: at most 1 MiB travels', async () => {
  const { child, bring, wait, travelled, verified } = await setUp()
  const job = await wait((await bring()).id)
  expect(job).toMatchObject({ state: 'done' })
  expect(job.result!.reusedBytes).toBeGreaterThan(255 * MIB)
  expect(travelled()).toBeLessThan(MIB)
  child.kill('SIGTERM')
  await once(child, 'exit')
  expect(await verified()).toBe('ok')
}, 300_000)

test.each([[true], [false]])(
  'after kill -9 in a delta, the next import resumes (service still there: %s)',
  async (isThere) => {
    const { root, xet, fake, child, client, start, bring, wait, travelled, verified } = await setUp()
    // what differs does not come: the kill hits an import that cannot end
    xet.setFaults(({ stage }) => (stage === 'xorb' ? { kind: 'stall' } : undefined))
    fake.setFaults(({ stage, path }) =>
      stage === 'cdn' && path === PATH ? { kind: 'stall', afterBytes: 0 } : undefined
    )
    let job = await bring()
    let durable = 0
    while (durable < 64 * MIB) {
      expect(job.error).toBeUndefined()
      await new Promise((resolve) => setTimeout(resolve, 20))
      job = await client.job(job.id)
      durable = await durableBytes(root, NEW.length)
    }
    child.kill('SIGKILL')
    await once(child, 'exit')
    fake.setFaults(undefined)
    xet.setFaults(isThere ? undefined : () => ({ kind: 'status', status: 503 }))

    const second = await start()
    const done = await wait((await bring()).id)
    expect(done).toMatchObject({ state: 'done' })
    const { fetchedBytes = 0, reusedBytes = 0 } = done.result!
    expect(fetchedBytes + reusedBytes).toBeLessThanOrEqual(NEW.length - durable + MIB)
    if (isThere) expect(travelled()).toBeLessThan(MIB)
    else expect(reusedBytes).toBe(0)
    second.kill('SIGTERM')
    await once(second, 'exit')
    expect(await verified()).toBe('ok')
  },
  300_000
)
