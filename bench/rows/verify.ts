import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Timed, timeCommand } from '../harness/command.ts'
import { bestNote, interleave, median } from '../harness/measure.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { formatRate, formatSeconds, formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'

const SHARDS = 8

export const verifyRow: Row = {
  name: 'verify',
  summary: 'verify of everything against two openssl dgst side by side',
  async run({ scratch, daemons, profile }) {
    const folder = await scratch.folder()
    const shardBytes = profile.verifyBytes / SHARDS
    const paths = Array.from({ length: SHARDS }, (_, i) =>
      writeSafetensors(folder, `model-0000${i + 1}-of-0000${SHARDS}.safetensors`, shardBytes)
    )
    const place = await scratch.folder()
    mkdirSync(join(place, 'root'), { mode: 0o700 })
    const daemon = await daemons.start({ root: join(place, 'root') })
    try {
      await daemon.api.job('/v1/import/local', { paths: [folder], as: 'bench/model' })
      const rounds = await interleave<Timed, 'svc' | 'openssl'>(profile.runs, {
        openssl: () =>
          timeCommand(
            `openssl dgst -sha256 "\${@:1:${SHARDS / 2}}" & openssl dgst -sha256 "\${@:${SHARDS / 2 + 1}}" & wait`,
            paths
          ),
        svc: async () => {
          const before = daemon.cpuSeconds()
          const { seconds } = await daemon.api.job('/v1/verify', { target: 'all' })
          return { seconds, cpuSeconds: daemon.cpuSeconds() - before }
        }
      })
      const [ours, peer] = (['svc', 'openssl'] as const).map((name) =>
        median(rounds[name].map((time) => time.seconds))
      ) as [number, number]
      const [oursCpu, peerCpu] = (['svc', 'openssl'] as const).map((name) =>
        median(rounds[name].map((time) => time.cpuSeconds))
      ) as [number, number]
      return [
        {
          what: `${SHARDS} blobs, ${formatSize(profile.verifyBytes)}`,
          ours: `${formatSeconds(ours)} (${formatRate(profile.verifyBytes / ours)})`,
          peer: `2 × openssl ${formatSeconds(peer)}`,
          ratio: peer / ours,
          target: '≥ 0.9',
          met: peer / ours >= 0.9,
          note: `${bestNote(
            rounds.openssl.map((time) => time.seconds),
            rounds.svc.map((time) => time.seconds)
          )}; CPU ${formatSeconds(oursCpu)} against ${formatSeconds(peerCpu)}`
        }
      ]
    } finally {
      await daemon.stop()
    }
  }
}
