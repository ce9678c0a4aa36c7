import { join } from 'node:path'
import { type Timed, timeCommand } from '../harness/command.ts'
import { bestNote, interleave, median } from '../harness/measure.ts'
import { formatRate, formatSeconds } from '../harness/report.ts'
import type { Bench, Line } from '../harness/row.ts'
import { type JobRequest, timeImport, warmUpFolder } from '../harness/time-import.ts'

export interface Comparison {
  readonly what: string
  /** The folder to import. */
  readonly folder: string
  readonly sizeBytes: number
  readonly note?: string
  /** Default 0.8. */
  readonly floor?: number
  /** What is asked for instead of an import of the folder. */
  readonly job?: JobRequest
}

/**
 * Alternates between importing a folder into a fresh daemon (after a small warm-up import), `openssl dgst` of the same files, and `cp`
 * plus `sync` of them. Compares the import with the slower of the two.
 */
export async function compareImport(
  { scratch, daemons, profile, say }: Bench,
  { what, folder, sizeBytes, note, floor = 0.8, job }: Comparison
): Promise<Line> {
  const warmUp = await warmUpFolder(scratch)
  const rounds = await interleave<Timed, 'svc' | 'openssl' | 'copy'>(profile.runs, {
    openssl: () => timeCommand('find "$1" -type f -exec openssl dgst -sha256 {} +', [folder]),
    copy: async () => {
      const target = await scratch.folder()
      // sync each file, because the store does so too
      const time = await timeCommand('cp -r "$1" "$2"; find "$2" -type f -exec sync {} +', [
        folder,
        join(target, 'copy')
      ])
      await scratch.drop(target)
      return time
    },
    svc: async (round) => {
      const time = await timeImport(daemons, scratch, { warmUp, folder, job })
      say(`${what}, round ${round + 1}: ${formatSeconds(time.seconds)}`)
      return time
    }
  })
  await scratch.drop(warmUp)
  const times = (name: keyof typeof rounds): number[] => rounds[name].map((time) => time.seconds)
  const seconds = (name: keyof typeof rounds): number => median(times(name))
  const cpu = (name: keyof typeof rounds): number => median(rounds[name].map((time) => time.cpuSeconds))
  const slower = seconds('openssl') >= seconds('copy') ? 'openssl' : 'copy'
  const ratio = seconds(slower) / seconds('svc')
  return {
    what,
    ours: `${formatSeconds(seconds('svc'))} (${formatRate(sizeBytes / seconds('svc'))})`,
    peer: `openssl ${formatSeconds(seconds('openssl'))}, cp+sync ${formatSeconds(seconds('copy'))}`,
    ratio,
    target: `≥ ${floor}`,
    met: ratio >= floor,
    note: [
      bestNote(times(slower), times('svc')),
      `CPU ${formatSeconds(cpu('svc'))} against ${formatSeconds(cpu('openssl') + cpu('copy'))} of both together`,
      note
    ]
      .filter(Boolean)
      .join('; ')
  }
}
