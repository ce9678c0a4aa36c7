import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchDaemon } from '../harness/daemon.ts'
import { startLoad } from '../harness/load.ts'
import { interleave, median } from '../harness/measure.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'

const CONFIG = '[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\nseed_on_import = true\n'
const refOf = (name: string): string => encodeURIComponent(`svc:///bench/${name}:bf16`)

interface Share {
  readonly announced: boolean
  readonly magnet: string
  readonly manifestDigest: string
}

async function shared(daemon: BenchDaemon): Promise<Share> {
  for (;;) {
    const share = (await daemon.api.get(`/v1/share?ref=${refOf('fill')}`)) as Share
    if (share.announced) return share
    await delay(50)
  }
}

interface Fill {
  readonly p99Ms: number
  readonly maxMs: number
  readonly seconds: number
}

/** The upper bound of what a thread for the swarm engine could gain the API: a separate process shares only the cores with it. */
export const apartRow: Row = {
  name: 'apart',
  summary: 'resolves beside a fill, by the daemon that is filled and by another one',
  async run({ scratch, daemons, profile, say }) {
    const sizeBytes = profile.largeBytes
    const place = await scratch.folder()
    const start = (name: string, within = place): Promise<BenchDaemon> => {
      mkdirSync(join(within, name), { recursive: true, mode: 0o700 })
      return daemons.start({ root: join(within, name), config: CONFIG })
    }
    const local = async (daemon: BenchDaemon, name: string, bytes: number): Promise<void> => {
      const folder = await scratch.folder()
      writeSafetensors(folder, 'model.safetensors', bytes)
      await daemon.api.job('/v1/import/local', { paths: [folder], as: `bench/${name}` })
    }
    const seed = await start('seed')
    await local(seed, 'fill', sizeBytes)
    const { magnet, manifestDigest } = await shared(seed)
    const fill = async (isApart: boolean): Promise<Fill> => {
      const stores = await scratch.folder()
      const filled = await start('filled', stores)
      const asked = isApart ? await start('asked', stores) : filled
      await local(asked, 'small', 1 << 20)
      const load = startLoad({
        socketPath: asked.api.socketPath,
        path: `/v1/resolve?ref=${refOf('small')}`,
        connections: 1,
        seconds: 300,
        maxRequests: 300_000,
        pauseMs: 2
      })
      const begun = performance.now()
      try {
        await filled.api.job('/v1/import/bt', { magnet, manifestDigest })
      } finally {
        load.stop()
        await load.result.catch(() => undefined)
        await filled.stop()
        if (isApart) await asked.stop()
        await scratch.drop(stores)
      }
      const { p99Ms, maxMs } = await load.result
      const seconds = (performance.now() - begun) / 1000
      say(`${isApart ? 'another' : 'the same'} daemon: p99 ${p99Ms.toFixed(2)} ms, ${seconds.toFixed(2)} s`)
      return { p99Ms, maxMs, seconds }
    }
    try {
      const rounds = await interleave<Fill, 'same' | 'apart'>(profile.runs, {
        same: () => fill(false),
        apart: () => fill(true)
      })
      const of = (name: 'same' | 'apart', field: keyof Fill): number => median(rounds[name].map((one) => one[field]))
      return [
        {
          what: `resolve p99 beside a fill of ${formatSize(sizeBytes)}`,
          ours: `${of('same', 'p99Ms').toFixed(2)} ms`,
          peer: `process apart ${of('apart', 'p99Ms').toFixed(2)} ms`,
          ratio: of('apart', 'p99Ms') / of('same', 'p99Ms'),
          target: '',
          note: `max ${of('same', 'maxMs').toFixed(1)} and ${of('apart', 'maxMs').toFixed(1)} ms; fill ${of('same', 'seconds').toFixed(2)} and ${of('apart', 'seconds').toFixed(2)} s`
        }
      ]
    } finally {
      await seed.stop()
    }
  }
}
