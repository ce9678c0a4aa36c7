import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchDaemon } from '../harness/daemon.ts'
import { startLoad } from '../harness/load.ts'
import type { LoopDelay } from '../harness/loop-delay.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { formatMib, formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'

const CONFIG = '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\nseed_on_import = true\n'
const PROBE = new URL('../harness/loop-delay.ts', import.meta.url).href
const MAX_DELAY_MS = 10
const refOf = (name: string): string => encodeURIComponent(`svc:///bench/${name}:bf16`)

interface Share {
  readonly announced: boolean
  readonly magnet: string
  readonly manifestDigest: string
}

async function shared(daemon: BenchDaemon, name: string): Promise<Share> {
  for (;;) {
    const share = (await daemon.api.get(`/v1/share?ref=${refOf(name)}`)) as Share
    if (share.announced) return share
    await delay(50)
  }
}

export const togetherRow: Row = {
  name: 'together',
  summary: 'the event loop while an import, a verification, a fill and the re-hash of a start run at the same time',
  async run({ scratch, daemons, profile }) {
    const sizeBytes = Math.floor(profile.largeBytes / 4)
    const place = await scratch.folder()
    const folder = async (name: string): Promise<string> => {
      const path = await scratch.folder()
      writeSafetensors(path, 'model.safetensors', name === 'small' ? 1 << 20 : sizeBytes)
      return path
    }
    const start = (name: string, env: NodeJS.ProcessEnv = {}): Promise<BenchDaemon> => {
      mkdirSync(join(place, name), { recursive: true, mode: 0o700 })
      const nodeFlags = env.BENCH_LOOP_DELAY === undefined ? [] : ['--import', PROBE]
      return daemons.start({ root: join(place, name), config: CONFIG, env, nodeFlags })
    }
    const local = (daemon: BenchDaemon, path: string, name: string): Promise<unknown> =>
      daemon.api.job('/v1/import/local', { paths: [path], as: `bench/${name}` })

    const seed = await start('seed')
    const before = await start('ours')
    try {
      await local(seed, await folder('fill'), 'fill')
      await local(before, await folder('held'), 'held')
      await local(before, await folder('small'), 'small')
    } finally {
      await before.stop()
    }
    const imported = await folder('import')
    const { magnet, manifestDigest } = await shared(seed, 'fill')
    const report = join(place, 'loop-delay.json')
    const daemon = await start('ours', { BENCH_LOOP_DELAY: report })
    process.kill(daemon.pid, 'SIGUSR2')
    const load = startLoad({
      socketPath: daemon.api.socketPath,
      path: `/v1/resolve?ref=${refOf('small')}`,
      connections: 1,
      seconds: 300,
      maxRequests: 300_000,
      pauseMs: 2
    })
    let peakBytes = 0
    try {
      await Promise.all([
        local(daemon, imported, 'import'),
        daemon.api.job('/v1/verify', { target: 'all' }),
        daemon.api.job('/v1/import/bt', { magnet, manifestDigest })
      ])
      peakBytes = daemon.memory().peakBytes
    } finally {
      load.stop()
      await load.result.catch(() => undefined)
      await daemon.stop()
      await seed.stop()
    }
    const { p99Ms, maxMs, requests } = await load.result
    const loop = JSON.parse(readFileSync(report, 'utf8')) as LoopDelay
    return [
      {
        what: `event loop p99, four of ${formatSize(sizeBytes)} at once`,
        ours: `${loop.p99Ms.toFixed(2)} ms`,
        peer: '',
        target: `≤ ${MAX_DELAY_MS} ms`,
        met: loop.p99Ms <= MAX_DELAY_MS,
        note: `p50 ${loop.p50Ms.toFixed(2)} ms, max ${loop.maxMs.toFixed(1)} ms; RSS ${formatMib(peakBytes)} at most`
      },
      {
        what: 'resolve p99 meanwhile',
        ours: `${p99Ms.toFixed(2)} ms`,
        peer: '',
        target: '',
        note: `max ${maxMs.toFixed(1)} ms, ${requests} requests`
      }
    ]
  }
}
