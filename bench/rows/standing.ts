import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { BenchDaemon } from '../harness/daemon.ts'
import { interleave, median } from '../harness/measure.ts'
import { writeGguf } from '../harness/model-files.ts'
import { formatSeconds, formatSize } from '../harness/report.ts'
import type { Line, Row } from '../harness/row.ts'

const MODEL_BYTES = 1 << 20
const LAYOUTS = ['hf', 'llama', 'lmstudio', 'comfyui', 'ollama'] as const
/** Long enough for the comparison that follows a start. */
const AFTER_START_MS = 3_000
const LOOK_MS = 5
const MAX_SEEN_SECONDS = 1
const MAX_CPU_SECONDS = 0.3
const MAX_SHARE = 0.02
/** What a small model of today takes. */
const SMALL_MODEL_BYTES = 100 << 20

export const standingRow: Row = {
  name: 'standing',
  summary: 'five folders that follow a store of many models: when an import is in all, what a start costs, their size',
  async run({ scratch, daemons, profile, say }) {
    const place = await scratch.folder()
    const root = join(place, 'root')
    const folders = LAYOUTS.map((layout) => ({ layout, path: join(place, layout) }))
    const views = folders.map(({ layout, path }) => `[[views]]\nlayout = "${layout}"\npath = "${path}"\n`).join('')
    const config = `[swarm]\nenabled = false\n${views}`
    const models = profile.standingModels
    const start = (given?: string): Promise<BenchDaemon> => daemons.start({ root, ...(given && { config: given }) })

    const first = await start()
    for (let n = 0; n < models; n++) await importOne(first, place, `model-${n}`)
    await first.stop()
    say(`${models} models imported`)

    const followed = await start(config)
    while (!isInAll(place, `model-${models - 1}`)) await delay(LOOK_MS)
    const seen: number[] = []
    for (let n = 0; n < profile.shortRuns; n++) {
      await importOne(followed, place, `later-${n}`)
      const begun = performance.now()
      while (!isInAll(place, `later-${n}`)) await delay(LOOK_MS)
      seen.push((performance.now() - begun) / 1000)
    }
    await followed.stop()

    const cpu = async (given?: string): Promise<number> => {
      const daemon = await start(given)
      try {
        await delay(AFTER_START_MS)
        return daemon.cpuSeconds()
      } finally {
        await daemon.stop()
      }
    }
    const started = await interleave(profile.runs, { with: () => cpu(config), without: () => cpu() })
    const cost = median(started.with) - median(started.without)
    const perModel = folders.reduce((sum, { path }) => sum + sizeOf(path), 0) / (models + profile.shortRuns)
    const lines: Line[] = [
      {
        what: `an import is in five folders of ${models} models`,
        ours: formatSeconds(median(seen)),
        peer: '',
        target: `≤ ${MAX_SEEN_SECONDS} s`,
        met: Math.max(...seen) <= MAX_SEEN_SECONDS,
        note: `longest ${formatSeconds(Math.max(...seen))}`
      },
      {
        what: 'a start that finds them in order, beyond one without',
        ours: formatSeconds(cost),
        peer: '',
        target: `≤ ${MAX_CPU_SECONDS} CPU s`,
        met: cost <= MAX_CPU_SECONDS
      },
      {
        what: 'their size, for each model',
        ours: formatSize(Math.round(perModel)),
        peer: '',
        target: `≤ 2 % of ${formatSize(SMALL_MODEL_BYTES)}`,
        met: perModel <= MAX_SHARE * SMALL_MODEL_BYTES
      }
    ]
    return lines
  }
}

async function importOne(daemon: BenchDaemon, place: string, name: string): Promise<void> {
  const path = writeGguf(place, `${name}-q8_0.gguf`, MODEL_BYTES)
  await daemon.api.job('/v1/import/local', { paths: [path], as: `bench/${name}` })
}

function isInAll(place: string, name: string): boolean {
  const hub = join(place, 'hf', `models--bench--${name}`, 'snapshots')
  return (
    existsSync(join(place, 'llama', `bench--${name}--q8_0.gguf`)) &&
    existsSync(join(place, 'lmstudio/bench', name)) &&
    existsSync(join(place, 'ollama/manifests/svc/bench', name)) &&
    existsSync(hub) &&
    readdirSync(hub).length > 0
  )
}

/** Without the store: what links lead to is not counted. */
const sizeOf = (folder: string): number =>
  existsSync(folder) ? Number(execFileSync('du', ['-s', '-B1', folder], { encoding: 'utf8' }).split('\t')[0]) : 0
