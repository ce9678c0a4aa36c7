// Measurements side by side with other programs: `pnpm bench -- [flags] [row …]`.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { inspect, parseArgs } from 'node:util'
import { DaemonLauncher } from './harness/daemon.ts'
import { type Plot, plotSvg } from './harness/plot.ts'
import { PROFILES, type Profile } from './harness/profile.ts'
import { formatTable, mergeResults, type Results, type RowReport, runFacts } from './harness/report.ts'
import type { Line, Row } from './harness/row.ts'
import { Scratch } from './harness/scratch.ts'
import { adoptRow } from './rows/adopt.ts'
import { apartRow } from './rows/apart.ts'
import { blobRow } from './rows/blob.ts'
import { boundsRow } from './rows/bounds.ts'
import { cliRow } from './rows/cli.ts'
import { firstRow } from './rows/first.ts'
import { growthImportRow, growthNamesRow } from './rows/growth.ts'
import { growthSwarmRow } from './rows/growth-swarm.ts'
import { hubRow } from './rows/hub.ts'
import { importRow } from './rows/import.ts'
import { importManyRow } from './rows/import-many.ts'
import { importMemoryRow } from './rows/import-memory.ts'
import { importSmallRow } from './rows/import-small.ts'
import { installedRow } from './rows/installed.ts'
import { libraryRow } from './rows/library.ts'
import { planRow } from './rows/plan.ts'
import { reflinkRow } from './rows/reflink.ts'
import { resolveRow } from './rows/resolve.ts'
import { seedRow } from './rows/seed.ts'
import { standingRow } from './rows/standing.ts'
import { startRow } from './rows/start.ts'
import { streamRow } from './rows/stream.ts'
import { togetherRow } from './rows/together.ts'
import { upkeepRow } from './rows/upkeep.ts'
import { verifyRow } from './rows/verify.ts'
import { webtorrentRow } from './rows/webtorrent.ts'

const ROWS: readonly Row[] = [
  importRow,
  importMemoryRow,
  importManyRow,
  importSmallRow,
  reflinkRow,
  adoptRow,
  verifyRow,
  blobRow,
  resolveRow,
  startRow,
  standingRow,
  cliRow,
  installedRow,
  libraryRow,
  planRow,
  hubRow,
  seedRow,
  firstRow,
  streamRow,
  webtorrentRow,
  togetherRow,
  apartRow,
  upkeepRow,
  boundsRow,
  growthNamesRow,
  growthImportRow,
  growthSwarmRow
]
/** Rows that are programs of their own, with the arguments of each run in the three sizes. */
const PROGRAMS: Readonly<
  Record<string, { readonly file: string; readonly args: (runs?: string) => readonly (readonly string[])[] }>
> = {
  swarm: { file: './swarm.ts', args: swarmArgs },
  rollout: {
    file: './rollout.ts',
    args: () => [
      values.smoke ? ['--mib', '8', '--only', 'crowd1'] : values.quick ? ['--mib', '32', '--only', 'crowd4,lt4'] : []
    ]
  },
  simulate: {
    file: './simulate.ts',
    args: () => [
      [
        ...(values.smoke || values.quick ? ['--quick'] : []),
        ...(values.plots === undefined ? [] : ['--plots', values.plots])
      ]
    ]
  }
}

const HELP = `pnpm bench -- [flags] [row …]

rows (default: all but the last three, which are programs of their own)
${ROWS.map(({ name, summary }) => `  ${name.padEnd(14)}${summary}`).join('\n')}
  swarm         the swarm engine against libtorrent (bench/swarm.ts)
  rollout       one model to many daemons over shaped links, beside libtorrent (bench/rollout.ts; Linux, root)
  simulate      the same in virtual time, to 10,000 nodes (bench/simulate.ts)

flags
  --quick         smaller sizes, three rounds
  --smoke         tiny sizes, one round: shows that the rows run, measures nothing
  --runs N        rounds
  --dir FOLDER    where data is put meanwhile (default /dev/shm, else the system's temporary folder)
  --source        the daemon from its sources, without a build
  --json FILE     saves the rows, too, such as in bench/results/DATE.json; other rows of that file stay
  --cpu-prof DIR  the daemons leave CPU profiles there
  --plots DIR     growth rows write their plots there, as SVG
`

function fail(message: string): never {
  process.stderr.write(`${message}\ntry: pnpm bench -- --help\n`)
  process.exit(2)
}

function parseWords(words: readonly string[]) {
  try {
    return parseArgs({
      // `pnpm bench -- --quick` passes the dashes on: what follows them are our flags, not rows.
      args: words[0] === '--' ? words.slice(1) : [...words],
      allowPositionals: true,
      options: {
        quick: { type: 'boolean' },
        smoke: { type: 'boolean' },
        runs: { type: 'string' },
        dir: { type: 'string' },
        source: { type: 'boolean' },
        json: { type: 'string' },
        'cpu-prof': { type: 'string' },
        plots: { type: 'string' },
        help: { type: 'boolean', short: 'h' }
      }
    })
  } catch (error) {
    return fail((error as Error).message)
  }
}
const { values, positionals } = parseWords(process.argv.slice(2))

async function main(): Promise<void> {
  if (values.help) return void process.stdout.write(HELP)
  const wanted = positionals
  const unknown = wanted.find((name) => !Object.hasOwn(PROGRAMS, name) && !ROWS.some((row) => row.name === name))
  if (unknown !== undefined) fail(`there is no row ${JSON.stringify(unknown)}`)
  const runs = values.runs === undefined ? undefined : Number(values.runs)
  if (runs !== undefined && !(Number.isInteger(runs) && runs >= 1 && runs <= 100))
    fail('--runs takes a number from 1 to 100')
  const size = values.smoke ? 'smoke' : values.quick ? 'quick' : 'full'
  const base: Profile = PROFILES[size]
  const profile = runs === undefined ? base : { ...base, runs, shortRuns: runs }
  const parent = values.dir ?? (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())

  const facts = runFacts(parent, `${size} sizes, medians of ${profile.runs} to ${profile.shortRuns} rounds`)
  process.stdout.write(`${Object.values(facts).join('\n')}\n\n`)
  const profiles = values['cpu-prof']
  const nodeFlags = profiles === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(profiles)}`]
  const daemons = new DaemonLauncher({ source: values.source ?? false, nodeFlags })
  const reports: RowReport[] = []
  const save = (): void => {
    if (values.json === undefined) return
    const older: Results = existsSync(values.json)
      ? JSON.parse(readFileSync(values.json, 'utf8'))
      : { runs: [], reports: [] }
    const newer: Results = { runs: [facts], reports: reports.map((report) => ({ ...report, date: facts.date })) }
    writeFileSync(values.json, `${JSON.stringify(mergeResults(older, newer), null, 2)}\n`)
  }
  for (const row of ROWS.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    const report = await runRow(row, parent, profile, daemons)
    reports.push(report)
    // a long run that is cut short has still said what it knows
    process.stdout.write(`${formatTable([report])}\n\n`)
    save()
  }
  if (reports.length > 1) process.stdout.write(`${formatTable(reports)}\n`)
  if (reports.some(({ error }) => error !== undefined)) process.exitCode = 1
  for (const [name, program] of Object.entries(PROGRAMS))
    if (wanted.includes(name)) {
      const parts: (readonly Line[])[] = []
      for (const args of program.args(values.runs)) parts.push(await runProgram(program.file, args))
      // one that failed sent none: the row keeps its older figures
      if (parts.every((lines) => lines.length > 0)) reports.push({ row: name, lines: parts.flat() })
      save()
    }
}

function plot(name: string, curves: Plot): void {
  const svg = plotSvg(curves)
  if (values.plots !== undefined) writeFileSync(resolve(values.plots, `${name}.svg`), svg)
}

async function runRow(row: Row, parent: string, profile: Profile, daemons: DaemonLauncher): Promise<RowReport> {
  const scratch = new Scratch(parent)
  const remove = (): void => {
    daemons.killAll()
    scratch.remove()
  }
  process.once('exit', remove)
  try {
    const say = (text: string): void => void (process.stderr.isTTY && process.stderr.write(`${row.name}: ${text}\n`))
    return { row: row.name, lines: await row.run({ profile, scratch, daemons, say, plot }) }
  } catch (error) {
    process.stderr.write(`${row.name}: ${inspect(error)}\n`)
    return { row: row.name, lines: [], error: (error as Error).message }
  } finally {
    await daemons.stopAll()
    remove()
    process.off('exit', remove)
  }
}

/** In full, also 4 GiB, where the start of threads weighs less. */
function swarmArgs(runs: string | undefined): readonly (readonly string[])[] {
  if (values.smoke) return [['16', runs ?? '1']]
  if (values.quick) return [['256', runs ?? '3']]
  return [
    ['1024', runs ?? '5'],
    ['4096', runs ?? '3', '4', 'lt-lt,us-us,daemons']
  ]
}

/** Runs a program that prints its own table. @returns the lines that it sent for the results, if it sends any. */
async function runProgram(file: string, args: readonly string[]): Promise<readonly Line[]> {
  const path = new URL(file, import.meta.url).pathname
  const child = spawn(process.execPath, ['--conditions=svc-source', path, ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc']
  })
  const lines: Line[] = []
  child.on('message', (message) => lines.push(...(message as Line[])))
  await new Promise<void>((done, reject) => {
    child.on('error', reject)
    child.on('exit', (code) => {
      if (code !== 0) process.exitCode = 1
      done()
    })
  })
  return lines
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // daemons and folders go in the `exit` handlers
    process.exit(130)
  })
}

await main()
