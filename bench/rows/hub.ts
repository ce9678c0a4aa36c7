import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Timed, timeCommand } from '../harness/command.ts'
import { end } from '../harness/daemon.ts'
import { bestNote, interleave, median } from '../harness/measure.ts'
import { formatRate, formatSeconds, formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'

const SERVER = new URL('../harness/hub-server.ts', import.meta.url).pathname

export const hubRow: Row = {
  name: 'hub',
  summary: 'an import from a hub on loopback against curl into a file and openssl dgst of it',
  async run({ scratch, daemons, profile, say }) {
    const { hubBytes, runs } = profile
    const hub = spawn(process.execPath, [...process.execArgv, SERVER, String(hubBytes)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc']
    })
    try {
      const [{ endpoint }] = (await once(hub, 'message')) as [{ endpoint: string }]
      const rounds = await interleave<Timed, 'svc' | 'tools'>(runs, {
        tools: async () => {
          const place = await scratch.folder()
          const time = await timeCommand('curl -sSfL -o "$2" "$1"; sync "$2"; openssl dgst -sha256 "$2"', [
            `${endpoint}/bench/model/resolve/main/model-q4_0.gguf`,
            join(place, 'file')
          ])
          await scratch.drop(place)
          return time
        },
        svc: async (round) => {
          const place = await scratch.folder()
          mkdirSync(join(place, 'root'), { mode: 0o700 })
          const daemon = await daemons.start({
            root: join(place, 'root'),
            config: `[swarm]\nenabled = false\n[hub]\nendpoint = "${endpoint}"\n`
          })
          try {
            const before = daemon.cpuSeconds()
            const { seconds } = await daemon.api.job('/v1/import/hf', { repo: 'bench/model' })
            say(`round ${round + 1}: ${formatSeconds(seconds)}`)
            return { seconds, cpuSeconds: daemon.cpuSeconds() - before }
          } finally {
            await daemon.stop()
            await scratch.drop(place)
          }
        }
      })
      const [ours, peer] = (['svc', 'tools'] as const).map((name) =>
        median(rounds[name].map((time) => time.seconds))
      ) as [number, number]
      const [oursCpu, peerCpu] = (['svc', 'tools'] as const).map((name) =>
        median(rounds[name].map((time) => time.cpuSeconds))
      ) as [number, number]
      return [
        {
          what: `one file of ${formatSize(hubBytes)}`,
          ours: `${formatSeconds(ours)} (${formatRate(hubBytes / ours)})`,
          peer: `curl, sync, openssl ${formatSeconds(peer)}`,
          ratio: peer / ours,
          target: '≥ 0.8',
          met: peer / ours >= 0.8,
          note: `${bestNote(
            rounds.tools.map((time) => time.seconds),
            rounds.svc.map((time) => time.seconds)
          )}; CPU ${formatSeconds(oursCpu)} against ${formatSeconds(peerCpu)}`
        }
      ]
    } finally {
      await end(hub)
    }
  }
}
