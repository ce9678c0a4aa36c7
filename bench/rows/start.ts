import { join } from 'node:path'
import { generateArtifacts } from '../harness/generated-store.ts'
import { interleave, median } from '../harness/measure.ts'
import { formatMib, formatSeconds } from '../harness/report.ts'
import type { Bench, Line, Row } from '../harness/row.ts'

const WITH_SWARM = '[swarm]\nenabled = true\nno_seed_verify = true\ndht = false\npeer_addr = "127.0.0.1:0"\n'
const MAX_MODELS_SECONDS = 0.25
const MAX_FIRST_MODELS_SECONDS = 0.8

export const startRow: Row = {
  name: 'start',
  summary: 'time and memory of a start with many artifacts; the list of as many models',
  async run(bench) {
    const { scratch, daemons, profile, say } = bench
    const lines: Line[] = []
    const { artifacts, manyArtifacts, runs, shortRuns } = profile
    const place = await scratch.folder()
    for (const [label, root, count, maxCpuSeconds, maxMib] of [
      ['no artifact', 'empty', 0, 0.3, 90],
      [`${artifacts} artifacts`, 'full', artifacts, 1, 150],
      [`${manyArtifacts} artifacts`, 'many', manyArtifacts, 6, 350]
    ] as const) {
      await generateArtifacts(join(place, root), count)
      say(`${label}: store made`)
      const started = await interleave(count > artifacts ? Math.min(runs, 3) : runs, {
        svc: async () => {
          const daemon = await daemons.start({ root: join(place, root), config: WITH_SWARM })
          try {
            const { rssBytes, ownBytes } = daemon.memory()
            return { seconds: daemon.startSeconds, cpuSeconds: daemon.cpuSeconds(), rssBytes, ownBytes }
          } finally {
            await daemon.stop()
          }
        }
      })
      const seconds = median(started.svc.map((each) => each.seconds))
      const rssBytes = median(started.svc.map((each) => each.rssBytes))
      const cpuSeconds = median(started.svc.map((each) => each.cpuSeconds))
      const ownBytes = median(started.svc.map((each) => each.ownBytes))
      lines.push(
        {
          what: `start with ${label}`,
          ours: formatSeconds(seconds),
          peer: '',
          target: `≤ ${maxCpuSeconds} CPU s`,
          met: cpuSeconds <= maxCpuSeconds,
          note: `CPU ${formatSeconds(cpuSeconds)}`
        },
        {
          what: `RSS after it`,
          ours: formatMib(rssBytes),
          peer: '',
          target: `≤ ${maxMib} MiB`,
          met: rssBytes <= maxMib << 20,
          note: `${formatMib(ownBytes)} of it are its own, the rest is Node's program and libraries`
        }
      )
      if (count > 0) lines.push(...(await inventory(bench, join(place, root), count, shortRuns)))
    }
    return lines
  }
}

/** Times `/v1/models`, first and warm. */
async function inventory({ daemons }: Bench, root: string, models: number, runs: number): Promise<Line[]> {
  const daemon = await daemons.start({ root })
  try {
    const time = async (): Promise<number> => {
      const begun = performance.now()
      const { namespaces } = (await daemon.api.get('/v1/models')) as { readonly namespaces: readonly unknown[] }
      const seconds = (performance.now() - begun) / 1000
      if (namespaces.length !== models) throw new Error(`only ${namespaces.length} of ${models} models are listed`)
      return seconds
    }
    const cold = await time()
    const warm: number[] = []
    for (let i = 0; i < runs; i++) warm.push(await time())
    return [
      {
        what: `/v1/models of ${models} models, first`,
        ours: formatSeconds(cold),
        peer: '',
        target: models > 10_000 ? '' : '≤ 0.8 s',
        met: models > 10_000 ? undefined : cold <= MAX_FIRST_MODELS_SECONDS
      },
      {
        what: `/v1/models of ${models} models, warm`,
        ours: formatSeconds(median(warm)),
        peer: '',
        target: models > 10_000 ? 'linear' : '< 250 ms',
        met: median(warm) < MAX_MODELS_SECONDS * Math.max(1, models / 10_000),
        note: `RSS ${formatMib(daemon.memory().rssBytes)}`
      }
    ]
  } finally {
    await daemon.stop()
  }
}
