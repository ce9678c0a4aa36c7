import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { timeCommand } from '../harness/command.ts'
import { median } from '../harness/measure.ts'
import { formatSeconds } from '../harness/report.ts'
import type { Bench, Line, Row } from '../harness/row.ts'

const SVC = new URL('../../packages/cli/dist/main.js', import.meta.url).pathname
const MAX_SECONDS = 1
const MAX_REQUESTS = 40

/** What is told of models before a byte of their weights is fetched, or loaded. */
export const planRow: Row = {
  name: 'plan',
  summary: 'the plan of a repository of 400 files in 12 quants, and inspections of files that were made to take long',
  run: async (bench) => [...(await plans(bench)), ...(await inspections(bench))]
}

const REPOSITORIES = {
  'bench/named': 'the plan of 400 files in 12 quants, on a line of 50 ms',
  'bench/unnamed': 'the same, where only headers tell the quants'
}

async function plans(bench: Bench): Promise<Line[]> {
  const hub = fork(new URL('../bounds/plan-hub-process.ts', import.meta.url))
  try {
    const [{ endpoint }] = (await once(hub, 'message')) as [{ endpoint: string }]
    const lines: Line[] = []
    for (const [repo, what] of Object.entries(REPOSITORIES)) {
      const runs: Planned[] = []
      for (let i = 0; i < bench.profile.runs; i++) runs.push(await plan(repo, endpoint, hub, bench))
      const of = (name: keyof Planned): number => median(runs.map((run) => run[name]))
      const [cpuSeconds, requests] = [of('cpuSeconds'), of('requests')]
      lines.push({
        what,
        ours: formatSeconds(of('seconds')),
        peer: '',
        target: `≤ 1 CPU s, ${MAX_REQUESTS} requests`,
        met: cpuSeconds <= MAX_SECONDS && requests <= MAX_REQUESTS,
        note: `CPU ${formatSeconds(cpuSeconds)} of svc and svcd; ${requests} requests`
      })
    }
    return lines
  } finally {
    hub.disconnect()
  }
}

interface Planned {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly requests: number
}

/** Of a daemon that knows nothing yet. */
async function plan(repo: string, endpoint: string, hub: ChildProcess, { scratch, daemons }: Bench): Promise<Planned> {
  const config = `[swarm]\nenabled = false\n[hub]\nendpoint = "${endpoint}"\n`
  const daemon = await daemons.start({ root: join(await scratch.folder(), 'root'), config })
  try {
    const before = daemon.cpuSeconds()
    const env = { ...process.env, SVC_SOCKET: daemon.api.socketPath }
    const line = '"$1" "$2" import hf "$3" --dry-run | grep -q q4_k_m'
    const { seconds, cpuSeconds } = await timeCommand(line, [process.execPath, SVC, repo], env)
    return { seconds, cpuSeconds: cpuSeconds + daemon.cpuSeconds() - before, requests: await requestsOf(hub) }
  } finally {
    await daemon.stop()
  }
}

async function requestsOf(hub: ChildProcess): Promise<number> {
  hub.send('requests')
  const [count] = (await once(hub, 'message')) as [number]
  return count
}

const text = (length: number, of: (i: number) => string): string =>
  `{${Array.from({ length }, (_, i) => of(i)).join()}}`

function safetensors(header: string): Buffer {
  const bytes = Buffer.from(header)
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(bytes.length))
  return Buffer.concat([length, bytes])
}

const HOSTILE: Readonly<Record<string, () => readonly [file: string, content: string | Buffer]>> = {
  'a header of 100 MB': () => ['model.safetensors', safetensors(' '.repeat(100_000_000))],
  'a header of 100,000 tensors': () => [
    'model.safetensors',
    safetensors(text(100_000, (i) => `"t${i}":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`))
  ],
  'a configuration of a million keys': () => ['config.json', text(1_000_000, (i) => `"key${i}":${i % 10}`)],
  'a configuration of 8 million levels': () => ['config.json', '['.repeat(8_000_000)],
  'fifteen templates of a million characters': () => [
    'tokenizer_config.json',
    JSON.stringify(Array.from({ length: 15 }, () => ({ chat_template: '{% for a in b %}'.repeat(62_500) })))
  ]
}

async function inspections({ scratch, profile }: Bench): Promise<Line[]> {
  const lines: Line[] = []
  for (const [what, make] of Object.entries(HOSTILE)) {
    const folder = join(await scratch.folder(), 'model')
    mkdirSync(folder)
    const [file, content] = make()
    writeFileSync(join(folder, file), content)
    const seconds: number[] = []
    for (let i = 0; i < profile.shortRuns; i++)
      seconds.push((await timeCommand('"$1" "$2" inspect "$3"', [process.execPath, SVC, folder])).cpuSeconds)
    lines.push({
      what: `\`svc inspect\` of ${what}`,
      ours: formatSeconds(median(seconds)),
      peer: '',
      target: '≤ 1 CPU s',
      met: median(seconds) <= MAX_SECONDS
    })
  }
  return lines
}
