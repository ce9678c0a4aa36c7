// Cuts the power under a daemon at work, again and again: whatever it acknowledged must be there afterwards, whole, and all that
// can be addressed must be right. `SVC_POWER_CUTS` cuts for each file system and way (200 without it).

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Job } from '@svc/client/protocol'
import { type FakeHub, startFakeHub } from '@svc/testkit/fake-hub'
import { type FileSystem, type PowerCut, TestDisk, whyNoPowerCuts } from '@svc/testkit/power-cut'
import { expect, onTestFinished, test } from 'vitest'
import type { ApiClient } from '../support/daemon.ts'
import { gguf, safetensors, writeFiles } from '../support/models.ts'
import { type SpawnedDaemon, spawnDaemon } from '../support/process.ts'

const CUTS = Number(process.env.SVC_POWER_CUTS ?? 200)
/** A fresh file system after so many: old ones fill up, and a young one behaves in another way. */
const CUTS_PER_DISK = 20
const WORKERS = 4

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Repeatable: the same seed gives the same sizes, moments and losses, up to the timing of the machine. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

interface Promised {
  /** Repository to manifest: imports that ended as done. */
  readonly imports: Map<string, string>
  /** `ns/name:tag` to index digest. */
  readonly tags: Map<string, string>
}

/** Imports models until the daemon is gone; adds to `promised` what was acknowledged. */
async function work(
  client: ApiClient,
  hub: FakeHub,
  sources: string,
  worker: number,
  first: number,
  promised: Promised
): Promise<void> {
  try {
    for (let n = first; ; n += WORKERS) {
      const as = `w${worker}/m${n}`
      let job: Job
      if (n % 5 === 4) {
        const id = `Org/m${n}`
        hub.commit({ id, files: [{ path: `m-q8_0.gguf`, content: gguf(60_000 + ((n * 7919) % 200_000), n) }] })
        const accepted = await client.post('/v1/import/hf', { repo: id })
        if (accepted.status !== 201) throw new Error(JSON.stringify(accepted.body))
        job = await client.finished(accepted.body)
        if (job.state === 'done') promised.imports.set(id.toLowerCase(), job.manifest!)
        continue
      }
      const folder = join(sources, `m${n}`)
      writeFiles(folder, {
        'm-q8_0.gguf': gguf(40_000 + ((n * 7919) % 300_000), n),
        'model.safetensors': safetensors(10_000 + (n % 97), n),
        'config.json': '{"model_type":"llama"}'
      })
      job = await client.import([folder], as)
      if (job.state !== 'done') continue
      promised.imports.set(as, job.manifest!)
      const [ns, name] = as.split('/')
      const root = join(sources, '..', 'mnt', 'root')
      const tagged = await client.post('/svcd/tag', { root, ns, name, tag: 'kept', index: 'current' })
      if (tagged.status === 200) promised.tags.set(`${as}:kept`, tagged.body.digest as string)
    }
  } catch {
    // The power is gone, and the daemon with it.
  }
}

async function checkAll(client: ApiClient, promised: Promised): Promise<void> {
  const verified = await client.verify('all')
  expect(verified.verify).toEqual({})
  expect(verified.state).toBe('done')
  const { body } = await client.get('/v1/models')
  const { namespaces, tags } = body as {
    namespaces: { ns: string; name: string; quants: string[] }[]
    tags: { repo: string; tag: string; digest: string; blobPresent: boolean }[]
  }
  const quants = new Map(namespaces.map((each) => [`${each.ns}/${each.name}`, each.quants]))
  const manifests = new Set<string>()
  for (const repo of promised.imports.keys()) {
    for (const quant of quants.get(repo) ?? []) {
      const opened = (await client.open(`svc:///${repo}:${quant}`)).body
      expect([repo, opened.missing]).toEqual([repo, undefined])
      manifests.add(opened.manifestDigest as string)
    }
  }
  for (const [repo, manifest] of promised.imports) expect([repo, manifests.has(manifest)]).toEqual([repo, true])
  const present = new Map(tags.map((each) => [`${each.repo}:${each.tag}`, each]))
  for (const [tag, digest] of promised.tags) {
    expect([tag, present.get(tag)?.digest, present.get(tag)?.blobPresent]).toEqual([tag, digest, true])
  }
}

interface Outcome {
  cuts: number
  acknowledged: number
  lost: number
}

/** Cuts until `cuts` are done; `preload` goes in front of the daemon. Stops at the first loss where `stopAtLoss`. */
async function cutAgainAndAgain(
  fileSystem: FileSystem,
  kind: PowerCut,
  cuts: number,
  seed: number,
  wrapper: readonly string[] = []
): Promise<Outcome> {
  const random = randomFrom(seed)
  const hub = await startFakeHub()
  onTestFinished(() => hub.close())
  const outcome: Outcome = { cuts: 0, acknowledged: 0, lost: 0 }
  let serial = 0
  while (outcome.cuts < cuts) {
    const folder = mkdtempSync(join(tmpdir(), 'svc-power-'))
    const sources = join(folder, 'sources')
    mkdirSync(sources)
    const disk = await TestDisk.create(folder, fileSystem, kind, seed + outcome.cuts)
    let daemon: SpawnedDaemon | undefined
    try {
      const promised: Promised = { imports: new Map(), tags: new Map() }
      const start = (before: readonly string[]): Promise<SpawnedDaemon> =>
        spawnDaemon({
          folder,
          wrapper: before,
          args: [
            '--root',
            join(disk.mountPoint, 'root'),
            '--socket',
            join(folder, 's.sock'),
            '--config',
            join(folder, 'off.toml')
          ],
          env: { HF_ENDPOINT: hub.endpoint }
        })
      for (let round = 0; round < CUTS_PER_DISK && outcome.cuts < cuts; round += 1) {
        daemon = await start(wrapper)
        const client = daemon
        const first = serial
        serial += 1_000
        const workers = Array.from({ length: WORKERS }, (_, worker) =>
          work(client, hub, sources, worker, first + worker, promised)
        )
        const enough = promised.imports.size + Math.floor(random() * 8)
        const latest = performance.now() + 15_000
        while (promised.imports.size < enough && performance.now() < latest) await delay(2)
        await delay(random() * 150)
        disk.cut()
        daemon.child.kill('SIGKILL')
        await daemon.ended
        await Promise.all(workers)
        await disk.powerOn()
        outcome.cuts += 1
        daemon = await start([])
        try {
          await checkAll(daemon, promised)
        } catch (error) {
          if (wrapper.length === 0) throw error
          outcome.lost += 1
          break
        } finally {
          daemon.child.kill('SIGKILL')
          await daemon.ended
        }
      }
      outcome.acknowledged += promised.imports.size
    } finally {
      daemon?.child.kill('SIGKILL')
      await daemon?.ended
      await disk.close()
      rmSync(folder, { recursive: true, force: true })
    }
    if (wrapper.length > 0 && outcome.lost > 0) break
  }
  return outcome
}

const MATRIX: readonly (readonly [FileSystem, PowerCut])[] = [
  ['ext4', 'shutdown'],
  ['xfs', 'shutdown'],
  ['ext4', 'volatile'],
  ['xfs', 'volatile']
]

test.each(MATRIX)(`%s, %s: ${CUTS} power cuts lose nothing that was acknowledged`, async (fileSystem, kind) => {
  const why = whyNoPowerCuts(kind)
  if (why !== undefined) return expect(process.env.SVC_REQUIRE_INTEROP, why).not.toBe('1')
  const outcome = await cutAgainAndAgain(fileSystem, kind, CUTS, 1)
  console.log(`${fileSystem}, ${kind}: ${outcome.cuts} cuts, ${outcome.acknowledged} acknowledged imports, none lost`)
  expect(outcome.acknowledged).toBeGreaterThan(outcome.cuts)
})

// The control: without fsync the same cuts must lose something, or the cuts prove nothing.
test.each(MATRIX)('%s, %s: without fsync something is lost', async (fileSystem, kind) => {
  const why = whyNoPowerCuts(kind)
  if (why !== undefined) return expect(process.env.SVC_REQUIRE_INTEROP, why).not.toBe('1')
  const outcome = await cutAgainAndAgain(fileSystem, kind, 20, 2, ['eatmydata'])
  console.log(`${fileSystem}, ${kind}, without fsync: a loss after ${outcome.cuts} cuts`)
  expect(outcome.lost).toBeGreaterThan(0)
})
