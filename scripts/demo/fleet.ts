import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Client, createClient, type Job } from '../../packages/client/src/index.ts'
import { seededBytes } from '../../packages/testkit/src/models.ts'
import { startTracker } from '../../packages/testkit/src/tracker.ts'
import type { Stage } from './stage.ts'

const MIB = 1 << 20
const RECEIVERS = 8
/** Simulates a machine's link with an upload limit. */
const LINK_BYTES_PER_SECOND = 3 * MIB
const MODEL_MIB = 48
const modelBytes = MODEL_MIB * MIB

interface Member {
  readonly name: string
  readonly client: Client
}

const bar = (share: number): string => '█'.repeat(Math.round(share * 24)).padEnd(24, '·')
const rate = (bytes: number): string => `${(bytes / MIB).toFixed(1)} MiB/s`.padStart(10)

/** One line per member: progress, peers and rates. */
async function table(
  receivers: readonly { readonly member: Member; readonly job: Job }[],
  seed: Member
): Promise<string[]> {
  const rows = await Promise.all(
    receivers.map(async ({ member, job }) => {
      const [now, { swarm }] = await Promise.all([member.client.job(job.id), member.client.status()])
      const share = now.state === 'done' ? 1 : (now.bytesDone ?? 0) / modelBytes
      const percent = `${Math.floor(share * 100)} %`.padStart(5)
      return `  ${member.name.padEnd(10)}${bar(share)}${percent}  ${String(swarm.peers).padStart(2)} peers ${rate(swarm.downBytesPerSecond)} in ${rate(swarm.upBytesPerSecond)} out`
    })
  )
  const { swarm } = await seed.client.status()
  const sent = swarm.torrents.reduce((sum, { uploadedBytes }) => sum + uploadedBytes, 0)
  return [
    `  publisher has sent ${(sent / modelBytes).toFixed(2)} copies, now ${rate(swarm.upBytesPerSecond).trim()}`,
    ...rows
  ]
}

/**
 * One daemon publishes a model and eight others fetch it at once. A table shows pieces spreading among them, and at the end how much
 * the publisher had to upload.
 */
export async function run(stage: Stage): Promise<void> {
  const tracker = await startTracker({ intervalMs: 30_000 })
  stage.later(() => tracker.close())
  const start = async (name: string): Promise<Member> => {
    const lines = [
      '[swarm]',
      'dht = false',
      'trusted = ["127.0.0.0/8"]',
      `trackers = ["${tracker.http}"]`,
      'peer_addr = "127.0.0.1:0"',
      'webseed_addr = ""',
      'seed_on_import = true',
      `upload_limit = ${LINK_BYTES_PER_SECOND}`
    ]
    const { folder } = await stage.daemon(name, `${lines.join('\n')}\n`)
    const client = createClient({ socketPath: join(folder, 's.sock') })
    stage.later(async () => client.close())
    return { name, client }
  }

  stage.step(
    `${RECEIVERS + 1} daemons and a tracker start; each daemon gives ${LINK_BYTES_PER_SECOND / MIB} MiB/s at most`
  )
  const [seed, ...receivers] = (await Promise.all([
    start('publisher'),
    ...Array.from({ length: RECEIVERS }, (_, index) => start(`node-${index + 1}`))
  ])) as [Member, ...Member[]]
  const model = join(stage.folder, 'model')
  mkdirSync(model)
  const head = Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1')
  writeFileSync(join(model, 'demo-q8_0.gguf'), Buffer.concat([head, seededBytes(modelBytes - head.length, 1)]))
  await seed.client.waitJob(await seed.client.importLocal({ paths: [model], as: 'demo/model' }))
  let share = await seed.client.share('svc:///demo/model:q8_0')
  while (!share.announced) {
    await delay(100)
    share = await seed.client.share('svc:///demo/model:q8_0')
  }

  stage.step(`One has a model of ${MODEL_MIB} MiB; eight fetch it at once, by its pin`)
  const begun = performance.now()
  const { magnet, manifestDigest } = share
  const jobs = await Promise.all(
    receivers.map(async (member) => ({
      member,
      job: await member.client.importBt({ magnet, manifestDigest, manifestFromPeers: true })
    }))
  )
  let drawn = 0
  for (;;) {
    const lines = await table(jobs, seed)
    // redraw in place on a terminal; elsewhere print one table after another
    if (process.stdout.isTTY && drawn > 0) process.stdout.write(`\x1b[${drawn}A\x1b[J`)
    for (const line of lines) stage.say(line)
    drawn = lines.length
    const states = await Promise.all(jobs.map(async ({ member, job }) => (await member.client.job(job.id)).state))
    if (states.every((state) => state === 'done')) break
    if (states.some((state) => state === 'failed')) throw new Error('a node did not get the model')
    await delay(process.stdout.isTTY ? 500 : 3_000)
  }
  const seconds = (performance.now() - begun) / 1000
  const { swarm } = await seed.client.status()
  const sent = swarm.torrents.reduce((sum, { uploadedBytes }) => sum + uploadedBytes, 0)
  stage.step(
    `${RECEIVERS} nodes have it, verified, after ${seconds.toFixed(1)} s; ${(sent / modelBytes).toFixed(2)} copies left the publisher`
  )
  stage.say(
    `  from the publisher alone it would take at least ${((RECEIVERS * modelBytes) / LINK_BYTES_PER_SECOND).toFixed(0)} s`
  )
}
