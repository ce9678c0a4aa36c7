// A long day for a daemon, in `SVC_SOAK_MINUTES` minutes (60 without it): people at work, two sources, a second daemon that
// fetches, and strangers that send rubbish to everything that listens. What it uses must stay flat, and nothing acknowledged
// may be missing at the end. Everything goes over 127.0.0.1, and the strangers are bounded in number and rate.

import { randomBytes, randomInt } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { encodeBencode } from '@svc/metainfo'
import { startFakeHub } from '@svc/testkit/fake-hub'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../support/daemon.ts'
import { gguf, safetensors, writeFiles } from '../support/models.ts'
import { type SpawnedDaemon, spawnDaemon } from '../support/process.ts'
import { rawExchange } from '../support/raw.ts'

const MINUTES = Number(process.env.SVC_SOAK_MINUTES ?? 60)
const SAMPLE_MS = Math.max(2_000, (MINUTES * 60_000) / 240)
/** Imports go round these names, so that the inventory stays as it is. */
const NAMES = 24

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0

interface Sample {
  readonly rssMiB: number
  readonly descriptors: number
  readonly threads: number
}

/** What the kernel says that a process uses. */
function sampleOf(pid: number): Sample {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const number = (key: string): number => Number(new RegExp(`^${key}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  return {
    rssMiB: number('VmRSS') / 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    threads: number('Threads')
  }
}

function config(folder: string, hub: string): string {
  const file = join(folder, 'config.toml')
  const swarm =
    'dht = false\npeer_addr = "127.0.0.1:0"\nwebseed_addr = "127.0.0.1:0"\nseed_on_import = true\nfill_timeout = 30'
  writeFileSync(file, `[swarm]\n${swarm}\n[hub]\nendpoint = "${hub}"\n`)
  return file
}

const daemonIn = (folder: string, hub: string): Promise<SpawnedDaemon> =>
  spawnDaemon({
    folder,
    args: ['--root', join(folder, 'root'), '--socket', join(folder, 's.sock'), '--config', config(folder, hub)]
  })

const RUBBISH: readonly (() => Buffer)[] = [
  () => randomBytes(randomInt(1, 2_000)),
  () => Buffer.from(`\x13BitTorrent protocol${'\0'.repeat(8)}`, 'latin1'),
  () => Buffer.concat([Buffer.from('\x13BitTorrent protocol', 'latin1'), randomBytes(48), randomBytes(100)]),
  () => Buffer.from([0xff, 0xff, 0xff, 0xff, 7]),
  () => Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(randomInt(1, 50))),
  () =>
    Buffer.from(
      `GET /bt/${'a'.repeat(64)}.torrent HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=${'9'.repeat(500)}-\r\n\r\n`
    ),
  () => Buffer.from('POST /v1/ensure HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n{'),
  () => Buffer.from('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n')
]
const DATAGRAMS: readonly (() => Buffer)[] = [
  () => randomBytes(randomInt(1, 1_400)),
  () => Buffer.from([0x41, 0, ...randomBytes(18)]),
  () => Buffer.from(encodeBencode({ t: 'aa', y: 'q', q: 'find_node', a: { id: randomBytes(20), target: 7 } })),
  () => Buffer.from(encodeBencode({ t: 'aa', y: 'r', r: { id: 7 } }))
]
const pick = <T>(from: readonly T[]): T => from[randomInt(from.length)]!

test(`${MINUTES} minutes of mixed work and hostile peers: what it uses stays flat, nothing is lost`, {
  timeout: MINUTES * 60_000 + 600_000
}, async () => {
  const hub = await startFakeHub({
    repos: [{ id: 'Org/Model', files: [{ path: 'm-q8_0.gguf', content: gguf(400_000, 99) }] }]
  })
  onTestFinished(() => hub.close())
  const home = temporaryFolder()
  const daemon = await daemonIn(home, hub.endpoint)
  const away = temporaryFolder()
  const other = await daemonIn(away, hub.endpoint)
  const pid = daemon.child.pid!
  const end = performance.now() + MINUTES * 60_000
  const over = (): boolean => performance.now() > end
  const acknowledged = new Map<string, readonly string[]>()
  const counts = { imports: 0, hub: 0, resolves: 0, reads: 0, fills: 0, verifies: 0, strangers: 0, datagrams: 0 }

  const { body: status } = await daemon.get('/v1/status')
  const [peerHost, peerPort] = (status.swarm.peerAddress as string).split(':')
  const [seedHost, seedPort] = (status.swarm.webseedAddress as string).split(':')

  const importing = async (): Promise<void> => {
    for (let n = 0; !over(); n += 1) {
      const as = `soak/m${n % NAMES}`
      const folder = writeFiles(join(home, 'sources', `m${n % NAMES}`), {
        'm-q8_0.gguf': gguf(100_000 + (n % NAMES) * 30_000, n % NAMES),
        'model.safetensors': safetensors(20_000, n % NAMES)
      })
      const job = await daemon.import([folder], as)
      expect(job.state).toBe('done')
      acknowledged.set(as, job.result!.manifests)
      counts.imports += 1
      if (n % 10 === 9) {
        const accepted = await daemon.post('/v1/import/hf', { repo: 'Org/Model' })
        expect((await daemon.finished(accepted.body)).state).toBe('done')
        counts.hub += 1
      }
      await delay(50)
    }
  }
  const asking = async (): Promise<void> => {
    while (!over()) {
      const as = `soak/m${randomInt(NAMES)}`
      const { status: code, body } = await daemon.open(`svc:///${as}:q8_0`)
      counts.resolves += 1
      if (code === 200) {
        const weights = (body.files as { kind?: string; digest: string }[]).find(({ kind }) => kind === 'weights.gguf')!
        const from = randomInt(50_000)
        const read = await daemon.get(`/v1/blob/${weights.digest}`, { Range: `bytes=${from}-${from + 9_999}` })
        expect([read.status, read.bytes.length]).toEqual([206, 10_000])
        counts.reads += 1
      }
      await delay(20)
    }
  }
  const filling = async (): Promise<void> => {
    while (!over()) {
      const [as] = [...acknowledged.keys()]
      if (as !== undefined) {
        const { status: code, body: share } = await daemon.get(
          `/v1/share?ref=${encodeURIComponent(`svc:///${as}:q8_0`)}`
        )
        if (code === 200) {
          const accepted = await other.post('/v1/import/bt', {
            infohash: share.infohash,
            manifestDigest: share.manifestDigest,
            webseeds: share.webseeds,
            peers: share.peers
          })
          expect((await other.finished(accepted.body)).state).toBe('done')
          counts.fills += 1
        }
      }
      await delay(2_000)
    }
  }
  const verifying = async (): Promise<void> => {
    while (!over()) {
      await delay(Math.min(20_000, MINUTES * 6_000))
      expect((await daemon.verify('all')).verify).toEqual({})
      counts.verifies += 1
    }
  }
  const strangers = async (): Promise<void> => {
    const udp = createSocket('udp4')
    onTestFinished(() => void udp.close())
    while (!over()) {
      const doors = [
        { host: peerHost!, port: Number(peerPort) },
        { host: seedHost!, port: Number(seedPort) }
      ]
      const socket = connect(pick(doors))
      socket.on('error', () => undefined)
      socket.write(pick(RUBBISH)())
      // Some leave at once, some stay and say nothing.
      setTimeout(() => socket.destroy(), pick([0, 50, 3_000])).unref()
      await rawExchange(daemon.socketPath, pick(RUBBISH)(), { end: true, timeoutMs: 60_000 }).catch(() => undefined)
      udp.send(pick(DATAGRAMS)(), Number(peerPort), peerHost!)
      counts.strangers += 2
      counts.datagrams += 1
      await delay(25)
    }
  }

  const samples: Sample[] = []
  const sampling = async (): Promise<void> => {
    while (!over()) {
      await delay(SAMPLE_MS)
      samples.push(sampleOf(pid))
    }
  }
  await Promise.all([importing(), asking(), asking(), filling(), verifying(), strangers(), sampling()])

  const half = samples.slice(samples.length >> 1)
  const early = half.slice(0, half.length >> 1)
  const late = half.slice(half.length >> 1)
  const of = (from: readonly Sample[], key: keyof Sample): number => median(from.map((each) => each[key]))
  const figures = (['rssMiB', 'descriptors', 'threads'] as const).map(
    (key) => [key, of(early, key), of(late, key)] as const
  )
  console.log(`${MINUTES} minutes: ${JSON.stringify(counts)}; third and last quarter: ${JSON.stringify(figures)}`)
  for (const [key, before, after] of figures)
    expect([key, after]).toEqual([
      key,
      expect.toSatisfy((value: number) => value <= before * 1.1 + (key === 'rssMiB' ? 16 : 4))
    ])

  for (const [as, manifests] of acknowledged) {
    const { body } = await daemon.open(`svc:///${as}:q8_0`)
    expect([as, manifests.includes(body.manifestDigest as string), body.missing]).toEqual([as, true, undefined])
  }
  expect((await daemon.verify('all')).verify).toEqual({})
  expect(readdirSync(join(home, 'root/incoming'))).toEqual([])
  expect(daemon.log.filter(({ level }) => Number(level) >= 50)).toEqual([])
  rmSync(join(home, 'sources'), { recursive: true })
})
