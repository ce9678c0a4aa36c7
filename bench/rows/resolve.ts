import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BareServer } from '../bounds/start-bare.ts'
import { startLoad } from '../harness/load.ts'
import type { LoadResult } from '../harness/load-client.ts'
import { bestNote, interleave, median } from '../harness/measure.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { hasNginx, Nginx } from '../harness/nginx.ts'
import type { Row } from '../harness/row.ts'

const CONNECTIONS = 16
const MAX_REQUESTS = 1_000_000

type Name = 'svc' | 'nginx' | 'bare'

interface Served extends LoadResult {
  readonly cpuSeconds: number
}

export const resolveRow: Row = {
  name: 'resolve',
  summary: 'resolve against nginx serving a file with the same answer',
  async run({ scratch, daemons, profile }) {
    if (!hasNginx()) throw new Error('nginx is not installed')
    const folder = await scratch.folder()
    writeSafetensors(folder, 'model.safetensors', 1 << 20)
    const place = await scratch.folder()
    mkdirSync(join(place, 'root'), { mode: 0o700 })
    const daemon = await daemons.start({ root: join(place, 'root') })
    let nginx: Nginx | undefined
    let bare: BareServer | undefined
    try {
      await daemon.api.job('/v1/import/local', { paths: [folder], as: 'bench/model' })
      const path = `/v1/resolve?ref=${encodeURIComponent('svc:///bench/model:bf16')}`
      const file = join(place, 'answer.json')
      writeFileSync(file, JSON.stringify(await daemon.api.get(path)))
      const server = (nginx = await Nginx.start(await scratch.folder(), file, { sendfile: true }))
      const bound = (bare = await BareServer.start(place, file, 'answer'))
      const load = async (socketPath: string, cpu: () => number): Promise<Served> => {
        const before = cpu()
        const { result } = startLoad({
          socketPath,
          path,
          connections: CONNECTIONS,
          seconds: profile.loadSeconds,
          maxRequests: MAX_REQUESTS,
          pauseMs: 0
        })
        const done = await result
        return { ...done, cpuSeconds: cpu() - before }
      }
      const ours = (): Promise<Served> => load(daemon.api.socketPath, () => daemon.cpuSeconds())
      await ours()
      const rounds = await interleave<Served, Name>(profile.runs, {
        svc: ours,
        nginx: () => load(server.socketPath, () => server.cpuSeconds()),
        bare: () => load(bound.socketPath, () => bound.cpuSeconds())
      })
      const rate = (name: Name): number => median(rounds[name].map(({ requests, seconds }) => requests / seconds))
      const perRequest = (name: Name): number[] => rounds[name].map(({ requests, seconds }) => seconds / requests)
      const perCpu = (name: Name): number =>
        median(rounds[name].map(({ requests, cpuSeconds }) => requests / cpuSeconds))
      const p99 = (name: Name): number => median(rounds[name].map(({ p99Ms }) => p99Ms))
      const ratio = rate('svc') / rate('nginx')
      return [
        {
          what: `requests/s, ${CONNECTIONS} connections`,
          ours: `${Math.round(rate('svc'))}/s`,
          peer: `nginx ${Math.round(rate('nginx'))}/s`,
          ratio,
          target: '≥ 0.35',
          met: ratio >= 0.35,
          note: `${bestNote(perRequest('nginx'), perRequest('svc'))}; p99 ${p99('svc').toFixed(2)} ms against ${p99('nginx').toFixed(2)} ms`
        },
        {
          what: 'requests per CPU second of the server',
          ours: `${Math.round(perCpu('svc'))}`,
          peer: `nginx ${Math.round(perCpu('nginx'))}`,
          ratio: perCpu('svc') / perCpu('nginx'),
          target: '',
          note: 'the client cannot be the limit here'
        },
        {
          what: 'bound: a bare node:http server with these bytes',
          ours: `${Math.round(rate('bare'))}/s`,
          peer: `nginx ${Math.round(rate('nginx'))}/s`,
          ratio: rate('bare') / rate('nginx'),
          target: '',
          note: `requests per CPU second ${(perCpu('bare') / perCpu('nginx')).toFixed(2)} of nginx; the daemon reaches ${(rate('svc') / rate('bare')).toFixed(2)} of it`
        }
      ]
    } finally {
      await bare?.stop()
      await nginx?.stop()
      await daemon.stop()
    }
  }
}
