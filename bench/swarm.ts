// The engine against libtorrent on loopback, one file in /dev/shm: seed and leech are processes of their own, runs are interleaved.
// The last line is daemon to daemon (`import/bt`): built daemons, the store included.
// Usage: node --conditions=svc-source bench/swarm.ts [sizeMiB=1024] [runs=5] [pieceMiB=4]
import { type ChildProcess, spawn } from 'node:child_process'
import { randomFillSync } from 'node:crypto'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { DaemonPair } from './swarm/daemon-pair.ts'

const sizeMiB = Number(process.argv[2] ?? 1024)
const runs = Number(process.argv[3] ?? 5)
const pieceMiB = Number(process.argv[4] ?? 4)
const only = process.argv[5]?.split(',')
const here = path.dirname(fileURLToPath(import.meta.url))
const python = path.join(here, '../packages/swarm/test/interop/libtorrent_peer.py')
const TUNED = {
  settings: {
    disk_io_read_mode: 0,
    disk_io_write_mode: 0,
    send_buffer_watermark: 4 * 1024 * 1024,
    max_out_request_queue: 1500,
    aio_threads: 4,
    hashing_threads: 2,
    file_pool_size: 100,
    unchoke_slots_limit: -1,
    mixed_mode_algorithm: 0
  }
}

type Kind = 'lt' | 'us'
type Message = Record<string, unknown> & { event: string }

class Peer {
  readonly #child: ChildProcess
  readonly #seen: Message[] = []
  #wake: () => void = () => undefined
  port = 0

  private constructor(child: ChildProcess, kind: Kind) {
    this.#child = child
    createInterface({ input: child.stdout! }).on('line', (line) => {
      if (process.env.BENCH_VERBOSE) console.error(line)
      const message = JSON.parse(line) as Message
      if (message.event === 'error') throw new Error(String(message.message))
      this.#seen.push(message)
      this.#wake()
    })
    child.on('exit', (code, signal) => {
      if (code !== 0) throw new Error(`a peer (${kind}) ended with ${code ?? signal}`)
    })
  }

  static async start(kind: Kind): Promise<Peer> {
    const child =
      kind === 'lt'
        ? spawn('/usr/bin/python3', [python, JSON.stringify(TUNED)], { stdio: ['pipe', 'pipe', 'inherit'] })
        : spawn(process.execPath, [path.join(here, 'swarm/engine-peer.ts')], {
            stdio: ['pipe', 'pipe', 'inherit']
          })
    const peer = new Peer(child, kind)
    peer.port = (await peer.wait('ready')).port as number
    return peer
  }

  send(message: object): void {
    this.#child.stdin!.write(`${JSON.stringify(message)}\n`)
  }

  async wait(event: string): Promise<Message> {
    for (;;) {
      const at = this.#seen.findIndex((message) => message.event === event)
      if (at >= 0) return this.#seen.splice(at, 1)[0]!
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async usage(): Promise<{ cpuSeconds: number; maxRssBytes: number; loopP99Ms?: number }> {
    this.send({ cmd: 'usage' })
    return (await this.wait('usage')) as unknown as { cpuSeconds: number; maxRssBytes: number }
  }

  async stop(): Promise<void> {
    const gone = new Promise((resolve) => this.#child.once('exit', resolve))
    this.send({ cmd: 'quit' })
    this.#child.stdin!.end()
    await gone
  }
}

const root = mkdtempSync(path.join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'bench-swarm-'))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
const seedFolder = path.join(root, 'seed')
mkdirSync(path.join(seedFolder, 'data'), { recursive: true })
const fd = openSync(path.join(seedFolder, 'data', 'model.bin'), 'w')
const chunk = Buffer.alloc(1024 * 1024)
for (let at = 0; at < sizeMiB; at += 1) writeSync(fd, randomFillSync(chunk))
closeSync(fd)
// libtorrent takes a folder with one file for that file.
writeFileSync(path.join(seedFolder, 'data', 'small.txt'), 'small')
const torrent = path.join(root, 'data.torrent')
const maker = await Peer.start('lt')
maker.send({ cmd: 'make', path: path.join(seedFolder, 'data'), piece: pieceMiB * 1024 * 1024, out: torrent })
await maker.wait('made')
await maker.stop()

interface Result {
  readonly megabytesPerSecond: number
  readonly seedCpu: number
  readonly leechCpu: number
  readonly seedRss: number
  readonly leechRss: number
}

async function measure(seedKind: Kind, leechKind: Kind): Promise<Result> {
  const seed = await Peer.start(seedKind)
  // A seed that hashes while it seeds is measured doing two things: libtorrent's is checked before the clock starts, as ours
  // trusts what its store has verified.
  seed.send({ cmd: 'add', id: 's', torrent, save: seedFolder, seed: true, check: true })
  await seed.wait(seedKind === 'lt' ? 'checked' : 'added')
  const leech = await Peer.start(leechKind)
  const target = path.join(root, 'target')
  mkdirSync(target)
  const before = [await seed.usage(), await leech.usage()] as const
  const begun = performance.now()
  // libtorrent takes up to a second until it dials: the clock starts with the first connection where it tells.
  leech.send({ cmd: 'add', id: 'l', torrent, save: target, peers: [['127.0.0.1', seed.port]] })
  const finished = await leech.wait('finished')
  const wall = (performance.now() - begun) / 1000
  const transfer = typeof finished.sinceDial === 'number' ? finished.sinceDial : wall
  const after = [await seed.usage(), await leech.usage()] as const
  await leech.stop()
  await seed.stop()
  rmSync(target, { recursive: true })
  const gigabytes = (sizeMiB * 1024 * 1024) / 1e9
  return {
    megabytesPerSecond: (gigabytes * 1000) / transfer,
    seedCpu: (after[0].cpuSeconds - before[0].cpuSeconds) / gigabytes,
    leechCpu: (after[1].cpuSeconds - before[1].cpuSeconds) / gigabytes,
    seedRss: after[0].maxRssBytes / 1e6,
    leechRss: after[1].maxRssBytes / 1e6
  }
}

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!
const pairs: readonly (readonly [Kind, Kind])[] = (
  [
    ['lt', 'lt'],
    ['us', 'lt'],
    ['lt', 'us'],
    ['us', 'us']
  ] as const
).filter(([seed, leech]) => only === undefined || only.includes(`${seed}-${leech}`))
const results = new Map<string, Result[]>()
const daemons =
  only === undefined || only.includes('daemons')
    ? await DaemonPair.start(path.join(root, 'daemons'), sizeMiB * 1024 * 1024)
    : undefined
const daemonSpeeds: number[] = []
for (let run = 0; run < runs; run += 1) {
  for (const [seed, leech] of pairs) {
    const key = `${seed} → ${leech}`
    const result = await measure(seed, leech)
    console.error(
      `${run + 1}/${runs} ${key}: ${result.megabytesPerSecond.toFixed(0)} MB/s, CPU s/GB ${result.seedCpu.toFixed(2)} + ${result.leechCpu.toFixed(2)}`
    )
    results.set(key, [...(results.get(key) ?? []), result])
  }
  if (daemons === undefined) continue
  const speed = await daemons.measure()
  console.error(`${run + 1}/${runs} daemon → daemon: ${speed.toFixed(0)} MB/s`)
  daemonSpeeds.push(speed)
}
await daemons?.stop()
// On a busy machine medians measure the neighbours: the best run of each kind is printed beside them.
console.log(
  '| pair | MB/s | ratio | best MB/s | ratio | seed CPU s/GB (best) | leech CPU s/GB (best) | seed RSS MB | leech RSS MB |\n|---|---|---|---|---|---|---|---|---|'
)
const base = results.get('lt → lt')
const speeds = (list: readonly Result[]): number[] => list.map((result) => result.megabytesPerSecond)
for (const [key, list] of results) {
  const of = (pick: (result: Result) => number): number => median(list.map(pick))
  const least = (pick: (result: Result) => number): number => Math.min(...list.map(pick))
  const ratio = (value: number, unit: number | undefined): string =>
    unit === undefined ? '' : (value / unit).toFixed(2)
  const typical = median(speeds(list))
  const best = Math.max(...speeds(list))
  console.log(
    `| ${key} | ${typical.toFixed(0)} | ${ratio(typical, base && median(speeds(base)))} | ${best.toFixed(0)} | ` +
      `${ratio(best, base && Math.max(...speeds(base)))} | ${of((r) => r.seedCpu).toFixed(2)} (${least((r) => r.seedCpu).toFixed(2)}) | ` +
      `${of((r) => r.leechCpu).toFixed(2)} (${least((r) => r.leechCpu).toFixed(2)}) | ${of((r) => r.seedRss).toFixed(0)} | ${of((r) => r.leechRss).toFixed(0)} |`
  )
}
if (daemonSpeeds.length > 0) {
  const unit = (pick: (values: number[]) => number, value: number): string =>
    base === undefined ? '' : (value / pick([...speeds(base)])).toFixed(2)
  const [typical, best] = [median([...daemonSpeeds]), Math.max(...daemonSpeeds)]
  console.log(
    `| daemon → daemon | ${typical.toFixed(0)} | ${unit(median, typical)} | ${best.toFixed(0)} | ${unit((values) => Math.max(...values), best)} | | | | |`
  )
}
