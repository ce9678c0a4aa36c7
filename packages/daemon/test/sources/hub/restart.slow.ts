import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openDiskStore } from '@svc/cas'
import { createClient } from '@svc/client'
import type { Job } from '@svc/client/protocol'
import { nameContent } from '@svc/testkit/fake-hub-content'
import { expect, test } from 'vitest'
import { durableBytes, spawnDaemon } from './daemon-process.ts'
import { fakeHub, tempFolder, undoAfterTests } from './fixtures.ts'

undoAfterTests()

const MiB = 2 ** 20
const content = { seed: 77, sizeBytes: 160 * MiB + 11 }
const repo = {
  id: 'Org/Large',
  files: [
    { path: 'large-q8_0.gguf', content },
    { path: 'config.json', content: Buffer.from('{"model_type":"llama"}') }
  ]
}

test('after kill -9 in the middle of a file, the next import resumes from the disk', async () => {
  const root = await tempFolder()
  await writeFile(join(root, 'config.toml'), '[swarm]\nenabled = false\n')
  const fake = await fakeHub({ repos: [repo], tokens: ['hf_good'] })
  const socketPath = join(root, 's.sock')
  const client = createClient({ socketPath })

  const first = await spawnDaemon(root, socketPath, fake)
  // the end of the file hangs: the kill hits a download that is under way.
  fake.setFaults(({ stage, headers }) => {
    const start = Number(/^bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0)
    return stage === 'cdn' && start >= 96 * MiB ? { kind: 'stall', afterBytes: 0 } : undefined
  })
  let job = await client.importHf({ repo: repo.id })
  let durable = 0
  while (durable < 64 * MiB) {
    expect(job.error).toBeUndefined()
    await new Promise((resolve) => setTimeout(resolve, 20))
    job = await client.job(job.id)
    durable = await durableBytes(root, content.sizeBytes)
  }
  first.kill('SIGKILL')
  await once(first, 'exit')
  const fetchedBefore = fake.bytesSent.get('large-q8_0.gguf')!
  fake.setFaults(undefined)

  const second = await spawnDaemon(root, socketPath, fake)
  const done: Job = await client.waitJob(await client.importHf({ repo: repo.id }), { intervalMs: 100 })
  expect(done.error).toBeUndefined()
  expect(done).toMatchObject({ state: 'done', bytesDone: done.bytesTotal })
  const fetchedAgain = fake.bytesSent.get('large-q8_0.gguf')! - fetchedBefore
  expect(fetchedAgain).toBeLessThanOrEqual(content.sizeBytes - durable)
  expect(
    fake.requests.every(({ origin, headers }) => (origin === 'hub') === (headers.authorization === 'Bearer hf_good'))
  ).toBe(true)
  second.kill('SIGTERM')
  await once(second, 'exit')

  const store = await openDiskStore({ root: join(root, 'store') })
  const digest = `sha256:${nameContent(content).sha256}` as never
  expect((await store.verify(digest)).status).toBe('ok')
  await store.close()
}, 120_000)
