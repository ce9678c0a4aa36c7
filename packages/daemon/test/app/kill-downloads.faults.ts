import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Job } from '@svc/client/protocol'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test } from 'vitest'
import { type SpawnedDaemon, spawnDaemon } from '../support/process.ts'
import { contentOf, startWebseed } from '../swarm/fake-webseed.ts'
import { MIB, Node, pinned, weights } from '../swarm/nodes.ts'

// How far a job's `bytesDone` may be ahead of what a restart after `kill -9` goes on from (docs/swarm.md), at any moment of a
// download that is faster than the disk.

const SIZE = 512 * MIB
const BOUND = 192 * MIB
const NAME = 'model-q8_0.gguf'
/** Kills when this share of the file has been reported. */
const MOMENTS = [0.02, 0.06, 0.13, 0.21, 0.34, 0.45, 0.58, 0.72, 0.83, 0.94]
const TIMEOUT_MS = 900_000

/** A source of one large file, on the loopback: how to begin the import, and what it has sent. */
interface Source {
  readonly path: string
  readonly body: unknown
  readonly env?: Readonly<Record<string, string>>
  readonly sentBytes: () => number
}

async function spawned(folder: string, { env }: Source): Promise<SpawnedDaemon> {
  const config = join(folder, 'config.toml')
  writeFileSync(config, '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\nfill_timeout = 60\n')
  return spawnDaemon({
    folder,
    args: ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', config],
    ...(env && { env })
  })
}

/** Kills an import once it has reported `atBytes`; @returns what it had reported, and what the next one fetched again. */
async function killed(source: Source, atBytes: number): Promise<{ reported: number; again: number }> {
  // on a disk: memory would have everything synced at once
  const folder = mkdtempSync(join(tmpdir(), 'svcd-'))
  const first = await spawned(folder, source)
  const { status, body } = await first.post(source.path, source.body)
  expect(status).toBe(201)
  let reported = 0
  while (reported < atBytes) {
    const job = (await first.get(`/v1/jobs/${body.id}`)).body as Job
    expect(job.error).toBeUndefined()
    reported = job.bytesDone ?? 0
  }
  first.child.kill('SIGKILL')
  await first.ended
  const before = source.sentBytes()
  const second = await spawned(folder, source)
  expect(await second.finished((await second.post(source.path, source.body)).body)).toMatchObject({ state: 'done' })
  second.child.kill('SIGKILL')
  await second.ended
  rmSync(folder, { recursive: true })
  return { reported, again: source.sentBytes() - before }
}

async function expectBounded(source: Source): Promise<void> {
  const ahead: number[] = []
  for (const moment of MOMENTS) {
    const { reported, again } = await killed(source, moment * SIZE)
    ahead.push(Math.round((reported - (SIZE - again)) / MIB))
  }
  process.stderr.write(`ahead of what was resumed, in MiB: ${ahead.join(' ')}\n`)
  expect(Math.max(...ahead)).toBeLessThanOrEqual(BOUND / MIB)
}

test(
  'a killed fill resumes at most 192 MiB before the progress that its job reported',
  async () => {
    const seeder = await Node.start()
    const share = await seeder.publish({ [NAME]: weights(SIZE, 41) })
    const webseed = await startWebseed(await contentOf(share))
    await expectBounded({
      path: '/v1/import/bt',
      body: pinned(share, { webseeds: [webseed.url], peers: [] }),
      sentBytes: () => webseed.fileBytes
    })
  },
  TIMEOUT_MS
)

test(
  'a killed download from a hub does the same',
  async () => {
    const hub = await startFakeHub({
      repos: [{ id: 'Org/Large', files: [{ path: NAME, content: weights(SIZE, 42) }] }]
    })
    onTestFinished(() => hub.close())
    await expectBounded({
      path: '/v1/import/hf',
      body: { repo: 'Org/Large' },
      env: { HF_ENDPOINT: hub.endpoint },
      sentBytes: () => hub.bytesSent.get(NAME) ?? 0
    })
  },
  TIMEOUT_MS
)
