// Ten minutes of a daemon with every door open, and of `svc ui` beside it: ten hostile hosts and a hostile user of this machine do all they
// can at once, an honest host and the owner want to be served. `SVC_HOSTILE_SECONDS` makes it shorter, `SVC_HOSTILE_ATTACKS` is a regular
// expression of the attacks to make. All of it shares the machine's cores; where the load was high before, the bar of the owner's answers is
// a loose one. Only root can be another user.
//
// Alone: pnpm exec vitest run --config vitest.faults.config.ts packages/daemon/test/app/hostile-hosts.faults.ts

import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { canBeAnotherUser, startGreedyUser } from '@svc/testkit/greedy-user'
import { SVC } from '@svc/testkit/programs'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import {
  type HonestReport,
  type HostileData,
  type HostileReport,
  HUB_TOKEN,
  withheldGguf
} from '../support/hostile-hosts.ts'
import { type Files, gguf, writeFiles } from '../support/models.ts'
import type { SpawnedDaemon } from '../support/process.ts'
import { startSeedingProcess } from '../support/seeding-process.ts'
import { type Signer, signerIn } from '../support/signed-models.ts'

const SECONDS = Number(process.env.SVC_HOSTILE_SECONDS ?? 600)
const QUIET = 1.5
const P99_MS = 20
const BUSY_P99_MS = 1_000
/** With all places of six ports taken. */
const RSS_MIB = 700
/** A small import of the owner's takes less. */
const IMPORT_MS = 60_000
const MIB = 1 << 20

/** More than any door has places. */
const GREED = { connections: 600, addresses: 600, pauseMs: 1_000, says: 'GET / HTTP/1.1\r\nHost: HOST\r\nX: ' }

test(`ten hostile hosts and a hostile user for ${SECONDS} s`, { timeout: SECONDS * 1_000 + 180_000 }, async () => {
  const barMs = loadavg()[0]! < QUIET ? P99_MS : BUSY_P99_MS
  const signer = signerIn(temporaryFolder())
  const hub = await hubThread(signer.sign({ 'config.json': '{"model_type":"llama"}', 'm-q8_0.gguf': gguf(MIB, 16) }))
  const { daemon, page, data } = await daemonWithEveryDoor(hub, signer)
  const hostile = fork(new URL('../support/hostile-hosts-process.ts', import.meta.url), {
    execArgv: ['--conditions=svc-source'],
    serialization: 'advanced'
  })
  const honest = new Worker(new URL('../support/honest-host-thread.ts', import.meta.url), { workerData: data })
  onTestFinished(async () => {
    hostile.kill('SIGKILL')
    await honest.terminate()
  })
  hostile.send(data)
  if (canBeAnotherUser) onTestFinished(await startGreedyUser(doorsOf(data), GREED))
  const looking = ownersPage(page)
  const owner = await ownersTime(daemon, hub)
  const looks = await looking
  const memory = (await daemon.get('/svcd/metrics')).bytes
    .toString()
    .match(/^(?:svc_heap|svc_buffer|process_resident)_\S+ \d+/gm)
  const honestReport = once(honest, 'message')
  honest.postMessage('stop')
  const hostileReport = once(hostile, 'message')
  hostile.send('stop')
  const [served] = (await honestReport) as [HonestReport]
  const [{ done, leaks }] = (await hostileReport) as [HostileReport]
  const doors = Object.entries(served).map(([door, { timesMs, failures }]) => {
    const sorted = timesMs.toSorted((a, b) => a - b)
    return { door, served: timesMs.length - failures.length, p50: at(sorted, 0.5), worst: at(sorted, 1), failures }
  })
  console.log(
    JSON.stringify(
      {
        load: loadavg(),
        barMs,
        owner,
        looks,
        memory,
        doors: doors.map(({ failures, ...row }) => ({ ...row, failed: failures.length })),
        done
      },
      null,
      1
    )
  )
  expect(leaks).toEqual([])
  expect(owner.refused).toEqual([])
  expect(owner.p99Ms).toBeLessThan(barMs)
  expect(looks.refused).toEqual([])
  expect(owner.maxRssMiB).toBeLessThan(RSS_MIB)
  expect(doors.filter(({ served, failures }) => served === 0 || failures.length > 0)).toEqual([])
  // every attack was made, so that what did not happen means something
  expect(Object.values(done).filter((times) => times === 0)).toEqual([])
  expect((await daemon.verify('all')).verify).toEqual({})
  expect(daemon.child.exitCode).toBe(null)
})

const at = (sorted: readonly number[], part: number): number =>
  Number((sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(1))

async function hubThread(
  signed: Files
): Promise<{ readonly endpoint: string; readonly prCommit: string; readonly thread: Worker }> {
  const thread = new Worker(new URL('../support/hostile-hub-thread.ts', import.meta.url), { workerData: signed })
  onTestFinished(() => void thread.terminate())
  const [{ endpoint, prCommit }] = (await once(thread, 'message')) as [{ endpoint: string; prCommit: string }]
  return { endpoint, prCommit, thread }
}

type Hub = Awaited<ReturnType<typeof hubThread>>

/** The owner resolves all the time, imports from the hub now and then, and looks at the process's memory. */
async function ownersTime(daemon: SpawnedDaemon, { thread }: Hub) {
  const timesMs: number[] = []
  const refused: unknown[] = []
  let maxRssMiB = 0
  let imports = 0
  const end = performance.now() + SECONDS * 1_000
  const importing = (async () => {
    while (performance.now() < end - IMPORT_MS) {
      const repo = `acme/owned-${imports}`
      thread.postMessage({ kind: 'commit', repo, seed: 1_000 + imports })
      const importOne = daemon.post('/v1/import/hf', { repo }).then(({ body }) => daemon.finished(body))
      const failed = importOne.catch((error: Error) => ({ state: error.message, repo }))
      const ended = await Promise.race([failed, delay(IMPORT_MS, { state: 'still waiting', repo })])
      if (ended.state !== 'done') refused.push(ended)
      imports += 1
      await delay(20_000)
    }
  })()
  while (performance.now() < end && daemon.child.exitCode === null) {
    const begun = performance.now()
    const status = await daemon.resolve('svc:///me/m0:q8_0').then(
      (answer) => answer.status,
      (error: Error) => error.message
    )
    timesMs.push(performance.now() - begun)
    if (status !== 200) refused.push(status)
    if (timesMs.length % 50 === 0) maxRssMiB = Math.max(maxRssMiB, rssMiB(daemon))
    await delay(20)
  }
  await importing
  timesMs.sort((a, b) => a - b)
  const [p50Ms, p99Ms, worstMs] = [at(timesMs, 0.5), at(timesMs, 0.99), at(timesMs, 1)]
  return { resolves: timesMs.length, p50Ms, p99Ms, worstMs, refused, maxRssMiB: Math.round(maxRssMiB), imports }
}

const rssMiB = ({ child }: SpawnedDaemon): number =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) / 1024

const doorsOf = ({ webseedPort, hubPort, ociPort, s3Port, metricsPort, peerPort, ui }: HostileData) => [
  ...[webseedPort, hubPort, ociPort, s3Port, metricsPort, peerPort].map((port) => ({ host: '127.0.0.1', port })),
  ui
]

interface OwnersPage {
  readonly url: URL
  readonly cookie: string
}

/** `svc ui` of the owner, in whose browser the page is open. */
async function openPage(socket: string): Promise<OwnersPage> {
  const command = spawn(process.execPath, [...SVC, 'ui', '--no-open', '--json'], {
    env: { PATH: process.env.PATH, SVC_SOCKET: socket },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  onTestFinished(() => void command.kill('SIGKILL'))
  const [line] = (await once(createInterface(command.stdout!), 'line')) as [string]
  const link = new URL((JSON.parse(line) as { link: string }).link)
  const entered = await fetch(new URL('/session', link), {
    method: 'POST',
    headers: { origin: link.origin, 'content-type': 'application/json' },
    body: JSON.stringify({ token: link.hash.slice(1) })
  })
  const { path } = (await entered.json()) as { path: string }
  return { url: new URL(path, link), cookie: entered.headers.get('set-cookie')!.split(';')[0]! }
}

/** The owner looks at the page and its models, each time by a new connection. */
async function ownersPage({ url, cookie }: OwnersPage) {
  const timesMs: number[] = []
  const refused: unknown[] = []
  const get = (path: string): Promise<unknown> =>
    new Promise((resolve) => {
      const asked = request(new URL(path, url), { headers: { cookie }, agent: false }, (response) => {
        response
          .resume()
          .on('end', () => resolve(response.statusCode))
          .on('error', resolve)
      })
      asked.on('error', (error) => resolve(error.message)).end()
    })
  const end = performance.now() + SECONDS * 1_000
  while (performance.now() < end) {
    for (const path of ['', 'v1/models']) {
      const begun = performance.now()
      const status = await get(path)
      timesMs.push(performance.now() - begun)
      if (status !== 200) refused.push(status)
    }
    await delay(500)
  }
  timesMs.sort((a, b) => a - b)
  return { looks: timesMs.length, p50Ms: at(timesMs, 0.5), p99Ms: at(timesMs, 0.99), refused }
}

/** A daemon with a model that everybody may have, and four that nobody may: a local one, and three that only the owner's token reaches. */
async function daemonWithEveryDoor(
  { endpoint, prCommit }: Hub,
  { keyFile }: Signer
): Promise<{ daemon: SpawnedDaemon; page: OwnersPage; data: HostileData }> {
  const {
    daemon,
    folder,
    ref: _,
    rssMiB: __,
    ...doors
  } = await startSeedingProcess({
    sizeBytes: 16 * MIB,
    dhtBootstrap: '127.0.0.1:9',
    hub: [`endpoint = "${endpoint}"`],
    mirror: ['s3_addr = "127.0.0.1:0"', 'on_demand = true', 'on_demand_allow = ["acme/*"]'],
    trust: ['names = ["acme/signed", "acme/forged-*"]', 'mode = "require"', `keys = ["${keyFile}"]`],
    env: { SVC_HF_TOKEN: HUB_TOKEN }
  })
  const own = writeFiles(join(folder, 'own'), { 'm-q8_0.gguf': withheldGguf(3 * MIB, 'the owner’s own') })
  const jobs = [await daemon.post('/v1/import/local', { paths: [own], as: 'me/own', private: true })]
  for (const repo of ['now/m', 'acme/gates', 'acme/honest']) jobs.push(await daemon.post('/v1/import/hf', { repo }))
  const done = await Promise.all(jobs.map(({ body }) => daemon.finished(body)))
  expect(done.map(({ state }) => state)).toEqual(['done', 'done', 'done', 'done'])
  const names = ['me/own', 'now/m', 'acme/gates']
  const withheld = await Promise.all(names.map((name, i) => known(daemon, name, done[i]!.result!.manifests[0]!)))
  const page = await openPage(join(folder, 's.sock'))
  const ui = { host: page.url.hostname, port: Number(page.url.port) }
  return { daemon, page, data: { ...doors, ui, prCommit, withheld } }
}

/** What a stranger would know who had seen the documents. */
async function known(
  daemon: SpawnedDaemon,
  ociName: string,
  manifest: string
): Promise<HostileData['withheld'][number]> {
  const { body } = await daemon.open(`svc:///${ociName}:q8_0`)
  const { indexDigest, files } = body as { indexDigest: string; files: { digest: string }[] }
  const index = JSON.parse((await daemon.get(`/v1/blob/${indexDigest}`)).bytes.toString())
  const member = index.members.find((each: { manifest: string }) => each.manifest === manifest)
  const { torrent } = JSON.parse((await daemon.get(`/v1/blob/${member.distribution}`)).bytes.toString())
  const digests = files.map(({ digest }) => digest)
  return { ociName, quant: 'q8_0', digests, torrentName: torrent.name, infohash: torrent.infohash.slice(9) }
}
