// Simulates rollouts in virtual time, at sizes that no test machine can run, with the engine's own picker, choker, super-seeding and
// origin rules.
// Usage: node --conditions=svc-source bench/simulate.ts [--quick] [--plots FOLDER] [--runs FILE]
// `--runs` reads the --json output of bench/rollout.ts, to put measured and simulated results side by side.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { plotSvg } from './harness/plot.ts'
import { boundOf, formatRuns, quantile, type Run } from './rollout/run.ts'

const MAIN = fileURLToPath(new URL('../packages/swarm/test/simulation/main.ts', import.meta.url))
const { values } = parseArgs({
  options: { quick: { type: 'boolean' }, plots: { type: 'string' }, runs: { type: 'string' } }
})

interface Request {
  readonly name: string
  readonly receivers: number
  readonly pieces: number
  readonly fileBytes: number
  readonly bytesPerSecond: number
  readonly dials: number
  readonly staggerMs?: number
  readonly zones?: number
  readonly bucket?: number
  readonly enginePieceBytes?: number
}

interface Response {
  readonly seconds: readonly number[]
  readonly origin: number
  readonly crossing: readonly number[]
  readonly connections: { readonly mean: number }
  readonly tookSeconds: number
}

/** 100 GB over 10 Gbit/s. Larger fleets use fewer, larger pieces to bound run time: coarser pieces only make a rollout slower. */
const LARGE = { fileBytes: 1e11, bytesPerSecond: 1.25e9, enginePieceBytes: 16 * 1_048_576 }
/** The parameters of bench/rollout.ts. */
const SMALL = { fileBytes: 96 * 1_048_576, pieces: 96, bytesPerSecond: 2e6, dials: 40 }
const UNIT_MS = (SMALL.fileBytes * 1000) / SMALL.bytesPerSecond

const requests: readonly Request[] = [
  ...[1, 4, 8, 16].map((receivers) => ({ name: 'flash crowd', receivers, ...SMALL })),
  { name: 'spread out', receivers: 8, ...SMALL, staggerMs: UNIT_MS / 2 },
  { name: 'bucket, flash crowd', receivers: 16, ...SMALL, bucket: 10 * SMALL.bytesPerSecond },
  { name: 'bucket, spread out', receivers: 8, ...SMALL, bucket: 10 * SMALL.bytesPerSecond, staggerMs: UNIT_MS / 2 },
  ...[8, 16].map((receivers) => ({ name: 'two zones', receivers, ...SMALL, zones: 2 })),
  { name: 'flash crowd, 100 GB', receivers: 64, ...LARGE, pieces: 1_024, dials: 20 },
  ...(values.quick
    ? []
    : [
        { name: 'flash crowd, 100 GB', receivers: 256, ...LARGE, pieces: 512, dials: 20 },
        { name: 'coarse flash crowd, 100 GB', receivers: 1_000, ...LARGE, pieces: 512, dials: 20 },
        { name: 'flash crowd, 100 GB', receivers: 1_000, ...LARGE, pieces: 1_024, dials: 20 },
        { name: 'flash crowd, 100 GB', receivers: 10_000, ...LARGE, pieces: 128, dials: 15 }
      ])
]

const child = spawn(process.execPath, ['--conditions=svc-source', MAIN], { stdio: ['pipe', 'pipe', 'inherit'] })
const responses = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
const runs: Run[] = values.runs === undefined ? [] : (JSON.parse(readFileSync(values.runs, 'utf8')) as Run[])
const bounds = new Map<number, number>()
for (const { name, ...options } of requests) {
  child.stdin.write(`${JSON.stringify(options)}\n`)
  const line = await responses.next()
  if (line.done) throw new Error('the simulation process exited early')
  const { seconds, origin, crossing, connections, tookSeconds } = JSON.parse(line.value) as Response
  const { receivers, pieces, fileBytes, bytesPerSecond } = options
  runs.push({
    name,
    program: 'simulation',
    receivers,
    seconds,
    unit: fileBytes / bytesPerSecond,
    pieces,
    origin,
    crossing: crossing.map((copies) => [copies, 0] as const)
  })
  bounds.set(receivers, boundOf({ receivers, pieces }))
  process.stderr.write(
    `${name}, ${receivers} nodes, ${connections.mean.toFixed(0)} connections each: ${tookSeconds.toFixed(0)} s\n`
  )
}
child.stdin.end()
await once(child, 'exit')
process.stdout.write(`${formatRuns(runs)}\n`)

if (values.plots !== undefined) {
  const curve = (program: Run['program'], is: (name: string) => boolean, share: number) =>
    runs
      .filter((run) => run.program === program && is(run.name))
      .map(({ receivers, seconds, unit }) => [receivers, quantile(seconds, share) / unit] as const)
  const crowd = (name: string): boolean => name.startsWith('flash crowd') && !name.includes('not trusted')
  const small = (name: string): boolean => name === 'flash crowd'
  const large = (name: string): boolean => crowd(name) && !small(name)
  const series = [
    { name: 'daemons, p99', points: curve('svc', small, 0.99) },
    { name: 'libtorrent, p99', points: curve('libtorrent', small, 0.99) },
    { name: 'simulation, 96 MiB', points: curve('simulation', small, 0.99) },
    { name: 'simulation, 100 GB', points: curve('simulation', large, 0.99) },
    { name: 'bound', points: [...bounds] }
  ].filter(({ points }) => points.length > 0)
  const svg = plotSvg({ title: 'A flash crowd', x: 'nodes', y: 'time / (F/C)', series })
  writeFileSync(resolve(values.plots, 'flash-crowd.svg'), svg)
}
