import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { generateRepositories } from '../harness/generated-store.ts'
import { median } from '../harness/measure.ts'
import { writeCode, writeSafetensors } from '../harness/model-files.ts'
import { growthOf, type Series } from '../harness/plot.ts'
import { formatMib, formatSeconds } from '../harness/report.ts'
import type { Bench, Line, Row } from '../harness/row.ts'

const MIB = 1 << 20
const OFF = '[swarm]\nenabled = false\n'
/** Tolerance for linear growth: an exponent up to this is measurement noise. */
const MAX_GROWTH = 1.15
const RESOLVES = 200

/** Summarizes a curve by its last step. */
function lineOf(series: Series, unit: string, format: (value: number) => string): Line {
  const growth = growthOf(series)
  const [x, y] = series.points.at(-1)!
  return {
    what: `${series.name}, ${x.toLocaleString('en-US')} ${unit}`,
    ours: format(y),
    peer: '',
    target: 'linear at most',
    met: growth <= MAX_GROWTH,
    note: `grows with the power ${growth.toFixed(2)} of the size in the last step`
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  await work()
  return (performance.now() - begun) / 1000
}

/** Start, `/v1/models`, resolve and memory by number of repositories. */
export const growthNamesRow: Row = {
  name: 'growth-names',
  summary: 'start, /v1/models, resolve and memory against 10 to 30,000 repositories; a plot',
  async run({ scratch, daemons, profile, plot }) {
    const names = ['start, CPU', 'models, first', 'models, warm', 'resolve'] as const
    const curves = names.map((name) => ({ name, points: [] as [number, number][] }))
    const memory = { name: 'RSS afterwards', points: [] as [number, number][] }
    for (const count of profile.growthNames) {
      const place = await scratch.folder()
      const root = join(place, 'root')
      await generateRepositories(root, count)
      const daemon = await daemons.start({ root, config: OFF })
      try {
        const start = daemon.cpuSeconds()
        const models = (): Promise<number> => seconds(() => daemon.api.get('/v1/models'))
        const first = await models()
        const warm = median([await models(), await models(), await models()])
        const resolves: number[] = []
        for (let i = 0; i < RESOLVES; i++) {
          const at = Math.floor((i * count) / RESOLVES)
          const ref = encodeURIComponent(`svc:///org${Math.floor(at / 100)}/model-${at}:bf16`)
          resolves.push(await seconds(() => daemon.api.get(`/v1/resolve?ref=${ref}`)))
        }
        for (const [i, value] of [start, first, warm, median(resolves)].entries())
          curves[i]!.points.push([count, Math.max(value, 1e-5)])
        memory.points.push([count, daemon.memory().rssBytes / MIB])
      } finally {
        await daemon.stop()
        await scratch.drop(place)
      }
    }
    plot('names', { title: 'Against the number of repositories', x: 'repositories', y: 'seconds', series: curves })
    plot('names-memory', {
      title: 'Memory against the number of repositories',
      x: 'repositories',
      y: 'MiB',
      series: [memory]
    })
    return [
      ...curves.map((curve) => lineOf(curve, 'repositories', formatSeconds)),
      lineOf(memory, 'repositories', (value) => formatMib(value * MIB))
    ]
  }
}

/** Measures one import into a fresh daemon. */
async function imported(
  { scratch, daemons }: Bench,
  folder: string
): Promise<{ readonly seconds: number; readonly peakMib: number }> {
  const place = await scratch.folder()
  mkdirSync(join(place, 'root'), { mode: 0o700 })
  const daemon = await daemons.start({ root: join(place, 'root'), config: OFF })
  try {
    const done = await daemon.api.job('/v1/import/local', { paths: [folder], as: 'bench/model' })
    return { seconds: done.seconds, peakMib: daemon.memory().peakBytes / MIB }
  } finally {
    await daemon.stop()
    await scratch.drop(place)
  }
}

/** Time and memory of an import, by its size and by its number of files. */
export const growthImportRow: Row = {
  name: 'growth-import',
  summary: 'an import against its size and against the number of its files, with the memory that it takes; plots',
  async run(bench) {
    const { scratch, profile, plot } = bench
    const lines: Line[] = []
    for (const [name, unit, sizes] of [
      ['size', 'MiB', profile.growthMib],
      ['files', 'files', profile.growthFiles]
    ] as const) {
      const time = { name: 'time', points: [] as [number, number][] }
      const memory = { name: 'RSS at most', points: [] as [number, number][] }
      for (const size of sizes) {
        const folder = await scratch.folder()
        if (name === 'size') writeSafetensors(folder, 'model.safetensors', size * MIB)
        else {
          writeSafetensors(folder, 'model.safetensors', MIB)
          for (let i = 0; i < size; i++) writeCode(folder, `modeling_part${i}.py`, 10 << 10)
        }
        const { seconds, peakMib } = await imported(bench, folder)
        time.points.push([size, seconds])
        memory.points.push([size, peakMib])
        await scratch.drop(folder)
      }
      plot(`import-${name}`, { title: `An import against its ${name}`, x: unit, y: 'seconds', series: [time] })
      plot(`import-${name}-memory`, {
        title: `Memory of an import against its ${name}`,
        x: unit,
        y: 'MiB',
        series: [memory]
      })
      lines.push(lineOf({ ...time, name: `import against its ${name}` }, unit, formatSeconds))
      lines.push(lineOf({ ...memory, name: `its RSS at most` }, unit, (value) => formatMib(value * MIB)))
    }
    return lines
  }
}
