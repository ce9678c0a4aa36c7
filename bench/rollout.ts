// Rollouts of one model to many machines: built daemons in network namespaces with shaped links (root, Linux), compared with
// libtorrent on the same links. Times are multiples of F/C, the time in which one link carries the model once.
// Usage: node --conditions=svc-source bench/rollout.ts [--mib 96] [--megabits 16] [--only a,b] [--json FILE]
import { linkSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { writeSafetensors } from './harness/model-files.ts'
import { Companion } from './rollout/companion.ts'
import { Fleet, type FleetOptions } from './rollout/fleet.ts'
import { Network } from './rollout/network.ts'
import { Processors } from './rollout/processors.ts'
import { formatRuns, type Run } from './rollout/run.ts'

const { values } = parseArgs({
  options: {
    mib: { type: 'string', default: '96' },
    megabits: { type: 'string', default: '16' },
    only: { type: 'string' },
    json: { type: 'string' }
  }
})
const bytes = Number(values.mib) * 1024 * 1024
const megabits = Number(values.megabits)
/** F/C in seconds, without any protocol overhead. */
const unit = (bytes * 8) / (megabits * 1e6)
/** Both programs cut files of this size into pieces of a mebibyte. */
const pieces = Math.ceil(bytes / 1_048_576)
const root = mkdtempSync('/dev/shm/bench-rollout-')
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130))
process.on('exit', () => {
  Network.sweep()
  rmSync(root, { recursive: true, force: true })
})
const model = join(root, 'model')
mkdirSync(model)
writeSafetensors(model, 'model.safetensors', bytes)
// A second file, because libtorrent makes a single-file torrent of a folder with one
const folder = join(root, 'data')
mkdirSync(folder)
linkSync(join(model, 'model.safetensors'), join(folder, 'model.safetensors'))
writeFileSync(join(folder, 'small.txt'), 'small')

type Scenario = () => Promise<Run>
let scratch = 0

/** Runs `body` with a fresh fleet, and removes it afterwards. */
async function inFleet(
  name: string,
  options: Pick<FleetOptions, 'receivers'> & Partial<FleetOptions>,
  body: (fleet: Fleet) => Promise<readonly number[]>
): Promise<Run> {
  const own = join(root, `run-${(scratch += 1)}`)
  mkdirSync(own)
  const fleet = await Fleet.start({ root: own, model, megabits, ...options })
  try {
    const processors = new Processors([...(fleet.seed ? [fleet.seed] : []), ...fleet.receivers].map(({ pid }) => pid))
    const seconds = await body(fleet)
    const used = processors.use()
    const origin = fleet.seed === undefined && !options.bucket ? undefined : (await fleet.originBytes()) / bytes
    const zones = Array.from({ length: (options.zones ?? 1) - 1 }, (_, at) => fleet.network.crossed(at + 1))
    return {
      name,
      program: 'svc',
      receivers: options.receivers,
      seconds,
      unit,
      pieces,
      origin,
      crossing: zones.map(({ inBytes, outBytes }) => [inBytes / bytes, outBytes / bytes] as const),
      processors: used
    }
  } finally {
    await fleet.stop()
    rmSync(own, { recursive: true, force: true })
  }
}

const everybody = (fleet: Fleet): Promise<number[]> =>
  Promise.all(fleet.receivers.map((_, index) => fleet.fetch(index)))

const crowd =
  (receivers: number): Scenario =>
  () =>
    inFleet('flash crowd', { receivers }, everybody)

/** Without `trusted`, to show what the fleet settings gain. */
const plain =
  (receivers: number): Scenario =>
  () =>
    inFleet('flash crowd, not trusted', { receivers, trusted: false }, everybody)

const staggered =
  (receivers: number, more: Partial<FleetOptions> = {}): Scenario =>
  () =>
    inFleet(more.bucket ? 'bucket, spread out' : 'spread out', { receivers, ...more }, (fleet) =>
      Promise.all(
        fleet.receivers.map(async (_, index) => {
          await delay(index * unit * 500)
          return fleet.fetch(index)
        })
      )
    )

/** Stops the seed as soon as one receiver has completed. */
const seedGone =
  (receivers: number): Scenario =>
  () =>
    inFleet('seed gone after one copy', { receivers }, async (fleet) => {
      const each = fleet.receivers.map((_, index) => fleet.fetch(index))
      const all = Promise.all(each)
      all.catch(() => undefined)
      await Promise.race(each)
      await fleet.stopSeed()
      return all
    })

const killed =
  (receivers: number): Scenario =>
  () =>
    inFleet('10 % killed', { receivers }, async (fleet) => {
      const victims = fleet.receivers.slice(0, Math.ceil(receivers / 10))
      const others = fleet.receivers.map((_, index) => index).slice(victims.length)
      for (const [index] of victims.entries()) fleet.fetch(index).catch(() => undefined)
      const all = Promise.all(others.map((index) => fleet.fetch(index)))
      await delay(unit * 400)
      for (const { pid } of victims) process.kill(pid, 'SIGKILL')
      return all
    })

const poisoned =
  (receivers: number): Scenario =>
  () =>
    inFleet('one poisoner', { receivers }, async (fleet) => {
      await fleet.poison()
      return everybody(fleet)
    })

const bucket =
  (receivers: number): Scenario =>
  () =>
    inFleet('bucket, flash crowd', { receivers, bucket: true }, everybody)

const zones =
  (receivers: number): Scenario =>
  () =>
    inFleet('two zones', { receivers, zones: 2 }, everybody)

/** The flash crowd with libtorrent, over the same links. */
const libtorrent =
  (receivers: number): Scenario =>
  async () => {
    const own = join(root, `run-${(scratch += 1)}`)
    mkdirSync(own)
    const network = Network.create()
    const companions: Companion[] = []
    try {
      companions.push(await Companion.start(network.hub, 'tracker'))
      const torrent = join(own, 'model.torrent')
      const machines = Array.from({ length: receivers + 1 }, (_, index) => network.machine(index, megabits))
      const peers: Companion[] = []
      for (const machine of machines) peers.push(await Companion.libtorrent(machine))
      companions.push(...peers)
      const [seed, ...leeches] = peers as [Companion, ...Companion[]]
      const trackers = [`http://${network.hub.address}:6969/announce`]
      seed.send({ cmd: 'make', path: folder, piece: 1024 * 1024, out: torrent, trackers })
      await seed.next(({ event }) => event === 'made')
      seed.send({ cmd: 'add', id: 's', torrent, save: root, seed: true, check: true })
      await seed.next(({ event }) => event === 'checked')
      const processors = new Processors(peers.map(({ pid }) => pid))
      const seconds = await Promise.all(
        leeches.map(async (leech, index) => {
          const begun = performance.now()
          const save = join(own, `leech-${index}`)
          leech.send({ cmd: 'add', id: 'l', torrent, save, peers: [[machines[0]!.address, 6881]] })
          await leech.next(({ event }) => event === 'finished')
          return (performance.now() - begun) / 1000
        })
      )
      return {
        name: 'flash crowd',
        program: 'libtorrent',
        receivers,
        seconds,
        unit,
        pieces,
        origin: undefined,
        crossing: [],
        processors: processors.use()
      }
    } finally {
      await Promise.all(companions.map((companion) => companion.stop()))
      network.remove()
      rmSync(own, { recursive: true, force: true })
    }
  }

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  crowd1: crowd(1),
  crowd4: crowd(4),
  crowd8: crowd(8),
  crowd16: crowd(16),
  lt1: libtorrent(1),
  lt4: libtorrent(4),
  lt8: libtorrent(8),
  lt16: libtorrent(16),
  plain4: plain(4),
  plain16: plain(16),
  spread8: staggered(8),
  gone8: seedGone(8),
  killed8: killed(8),
  killed16: killed(16),
  poison8: poisoned(8),
  bucket8: bucket(8),
  bucket16: bucket(16),
  bucketspread8: staggered(8, { bucket: true }),
  zones8: zones(8),
  zones16: zones(16)
}

const runs: Run[] = []
/** Saves the results after each run, so that an interrupted series is not lost. */
function saveRuns(): void {
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(runs, null, 2)}\n`)
}
for (const name of values.only?.split(',') ?? Object.keys(SCENARIOS)) {
  const scenario = SCENARIOS[name]
  if (scenario === undefined) throw new Error(`unknown scenario ${name}; one of ${Object.keys(SCENARIOS).join(', ')}`)
  try {
    runs.push(await scenario())
    saveRuns()
    process.stderr.write(`${formatRuns(runs.slice(-1)).split('\n').at(-1)}\n`)
  } catch (error) {
    process.stderr.write(`${name}: ${(error as Error).stack}\n`)
    process.exitCode = 1
  }
}
process.stdout.write(
  `F = ${values.mib} MiB, C = ${megabits} Mbit/s, F/C = ${unit.toFixed(1)} s\n\n${formatRuns(runs)}\n`
)
