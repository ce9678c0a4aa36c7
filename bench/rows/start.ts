import { join } from 'node:path'
import { generateArtifacts, generateRepositories } from '../harness/generated-store.ts'
import { interleave, median } from '../harness/measure.ts'
import { formatMib, formatSeconds } from '../harness/report.ts'
import type { Line, Row } from '../harness/row.ts'

const WITH_SWARM = '[swarm]\nenabled = true\nno_seed_verify = true\ndht = false\npeer_addr = "127.0.0.1:0"\n'
const MAX_START_SECONDS = 3
const MAX_RSS_BYTES = 200 << 20
const MAX_MODELS_SECONDS = 0.2

export const startRow: Row = {
  name: 'start',
  summary: 'time and memory of a start with many artifacts; the inventory of many repositories',
  async run({ scratch, daemons, profile, say }) {
    const lines: Line[] = []
    const { artifacts, repositories, runs, shortRuns } = profile
    const place = await scratch.folder()
    for (const [label, root, config] of [
      ['no artifact', 'empty', WITH_SWARM],
      [`${artifacts} artifacts`, 'full', WITH_SWARM]
    ] as const) {
      await generateArtifacts(join(place, root), root === 'full' ? artifacts : 0)
      say(`${label}: store made`)
      const started = await interleave(runs, {
        svc: async () => {
          const daemon = await daemons.start({ root: join(place, root), config, probe: '/v1/models' })
          try {
            return { seconds: daemon.startSeconds, rssBytes: daemon.memory().rssBytes }
          } finally {
            await daemon.stop()
          }
        }
      })
      const seconds = median(started.svc.map((each) => each.seconds))
      const rssBytes = median(started.svc.map((each) => each.rssBytes))
      const floor = root === 'empty'
      lines.push(
        {
          what: `start with ${label}`,
          ours: formatSeconds(seconds),
          peer: '',
          target: floor ? '' : '< 3 s',
          met: floor ? undefined : seconds < MAX_START_SECONDS
        },
        {
          what: `RSS after it`,
          ours: formatMib(rssBytes),
          peer: '',
          target: floor ? '' : '≤ 200 MiB',
          met: floor ? undefined : rssBytes <= MAX_RSS_BYTES
        }
      )
    }
    await generateRepositories(join(place, 'names'), repositories)
    say(`${repositories} repositories: store made`)
    const daemon = await daemons.start({ root: join(place, 'names') })
    try {
      const time = async (): Promise<number> => {
        const begun = performance.now()
        const { namespaces } = (await daemon.api.get('/v1/models')) as { readonly namespaces: readonly unknown[] }
        const seconds = (performance.now() - begun) / 1000
        if (namespaces.length !== repositories)
          throw new Error(`${namespaces.length} of ${repositories} repositories are listed`)
        return seconds
      }
      const cold = await time()
      const warm: number[] = []
      for (let i = 0; i < shortRuns; i++) warm.push(await time())
      lines.push({
        what: `/v1/models of ${repositories} repositories, warm`,
        ours: formatSeconds(median(warm)),
        peer: '',
        target: '< 200 ms',
        met: median(warm) < MAX_MODELS_SECONDS,
        note: `first call ${formatSeconds(cold)}; RSS ${formatMib(daemon.memory().rssBytes)}`
      })
    } finally {
      await daemon.stop()
    }
    return lines
  }
}
