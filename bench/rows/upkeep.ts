import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { timeCommand } from '../harness/command.ts'
import { generateArtifacts } from '../harness/generated-store.ts'
import { median } from '../harness/measure.ts'
import { growthOf, type Series } from '../harness/plot.ts'
import { formatMib, formatSeconds } from '../harness/report.ts'
import type { Line, Row } from '../harness/row.ts'

const CLI = new URL('../../packages/cli/dist/main.js', import.meta.url).pathname
const OFF = '[swarm]\nenabled = false\n'
/** Blobs per artifact: weights, model config, manifest, piece layers, record, index. */
const BLOBS_PER_ARTIFACT = 6
const MAX_GROWTH = 1.15
const MIB = 1 << 20
const VIEWS = 100
const ROUNDS = 3

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return (performance.now() - begun) / 1000
}

async function medianOf(work: () => Promise<number>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS; round++) times.push(await work())
  return median(times)
}

/** Maintenance of a store: garbage collection, disk usage, views. */
export const upkeepRow: Row = {
  name: 'upkeep',
  summary: 'gc and du against the number of blobs, and the creation of views; a plot',
  async run({ scratch, daemons, profile, plot, say }) {
    const curves: Series[] = [
      { name: 'gc', points: [] },
      { name: '`svc du`', points: [] }
    ]
    const memory: Series = { name: 'RSS afterwards', points: [] }
    const lines: Line[] = []
    for (const count of profile.growthArtifacts) {
      const place = await scratch.folder()
      const root = join(place, 'root')
      await generateArtifacts(root, count)
      say(`${count} artifacts: store made`)
      const daemon = await daemons.start({ root, config: OFF })
      try {
        const { api } = daemon
        const env = { ...process.env, SVC_SOCKET: api.socketPath }
        const cpuBefore = daemon.cpuSeconds()
        const gc = await medianOf(async () => (await api.job('/v1/gc', {})).seconds)
        const gcCpu = (daemon.cpuSeconds() - cpuBefore) / ROUNDS
        const du = existsSync(CLI)
          ? await medianOf(
              async () => (await timeCommand('"$1" "$2" du >/dev/null', [process.execPath, CLI], env)).seconds
            )
          : Number.NaN
        const blobs = count * BLOBS_PER_ARTIFACT
        for (const [at, value] of [gc, du].entries())
          (curves[at]!.points as [number, number][]).push([blobs, Number.isNaN(value) ? 1e-5 : value])
        ;(memory.points as [number, number][]).push([blobs, daemon.memory().rssBytes / MIB])
        if (count !== profile.growthArtifacts.at(-1)) continue
        mkdirSync(join(place, 'views'))
        const ref = (at: number): string => `svc:///org${Math.floor(at / 100)}/model-${at}:bf16`
        const each = await seconds(async () => {
          for (let at = 0; at < VIEWS; at++)
            await api.post('/v1/views', { ref: ref(at % count), path: join(place, 'views', String(at)) })
        })
        lines.push(
          {
            what: `gc of ${blobs} blobs`,
            ours: formatSeconds(gc),
            peer: '',
            target: '',
            note: `CPU ${formatSeconds(gcCpu)}; RSS ${formatMib(daemon.memory().rssBytes)}`
          },
          { what: `\`svc du\` of ${blobs} blobs`, ours: formatSeconds(du), peer: '', target: '' },
          {
            what: 'a view',
            ours: formatSeconds(each / VIEWS),
            peer: '',
            target: '',
            note: `one after the other, ${VIEWS} of them`
          }
        )
      } finally {
        await daemon.stop()
        await scratch.drop(place)
      }
    }
    plot('upkeep', { title: 'Against the number of blobs', x: 'blobs', y: 'seconds', series: curves })
    plot('upkeep-memory', { title: 'Memory against the number of blobs', x: 'blobs', y: 'MiB', series: [memory] })
    for (const curve of [...curves, memory]) {
      const growth = growthOf(curve)
      lines.push({
        what: `${curve.name} against blobs`,
        ours: `power ${growth.toFixed(2)}`,
        peer: '',
        target: 'linear at most',
        met: growth <= MAX_GROWTH
      })
    }
    return lines
  }
}
