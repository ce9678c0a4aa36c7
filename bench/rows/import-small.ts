import { type Timed, timeCommand } from '../harness/command.ts'
import { hasLoopDisk, LoopDisk } from '../harness/loop-disk.ts'
import { bestNote, interleave, median } from '../harness/measure.ts'
import { writeCode, writeSafetensors } from '../harness/model-files.ts'
import { formatSeconds } from '../harness/report.ts'
import type { Bench, Line, Row } from '../harness/row.ts'
import { Scratch } from '../harness/scratch.ts'
import { timeImport, warmUpFolder } from '../harness/time-import.ts'

const FILE_BYTES = 10 << 10
const WEIGHTS_BYTES = 1 << 20
const DISK_BYTES = 2 * 2 ** 30

export const importSmallRow: Row = {
  name: 'import-small',
  summary: 'many small files on tmpfs and on ext4 (a loop device), against git add',
  async run(bench) {
    const lines = [...(await measure(bench, bench.scratch, 'where the data lies', 0.25))]
    if (!hasLoopDisk()) {
      const absent = { ours: '', peer: '', target: '≤ 450 ms', note: 'not measured: needs root and mkfs.ext4' }
      return [...lines, { what: 'on ext4', ...absent }]
    }
    const disk = new LoopDisk(DISK_BYTES)
    const scratch = new Scratch(disk.path)
    try {
      lines.push(...(await measure(bench, scratch, 'on ext4', 0.45)))
    } finally {
      await bench.daemons.stopAll()
      scratch.remove()
      disk.close()
    }
    return lines
  }
}

async function measure(
  { daemons, profile, say }: Bench,
  scratch: Scratch,
  where: string,
  targetSeconds: number
): Promise<Line[]> {
  const folder = await scratch.folder()
  writeSafetensors(folder, 'model.safetensors', WEIGHTS_BYTES)
  for (let i = 1; i < profile.smallFiles; i++)
    writeCode(folder, `modeling_part${String(i).padStart(5, '0')}.py`, FILE_BYTES)
  const warmUp = await warmUpFolder(scratch)
  const rounds = await interleave<Timed, 'git' | 'svc'>(profile.runs, {
    git: async () => {
      const place = await scratch.folder()
      await timeCommand('git init -q "$1"; cp -r "$2/." "$1"; sync', [place, folder])
      const time = await timeCommand('git -C "$1" add -A', [place])
      await scratch.drop(place)
      return time
    },
    svc: async (round) => {
      const time = await timeImport(daemons, scratch, { warmUp, folder })
      say(`${where}, round ${round + 1}: ${formatSeconds(time.seconds)}`)
      return time
    }
  })
  await scratch.drop(folder)
  await scratch.drop(warmUp)
  const times = (name: 'git' | 'svc'): number[] => rounds[name].map(({ seconds }) => seconds)
  const cpu = (name: 'git' | 'svc'): number => median(rounds[name].map(({ cpuSeconds }) => cpuSeconds))
  const [ours, git] = [median(times('svc')), median(times('git'))]
  return [
    {
      what: `${profile.smallFiles} files of 10 KiB, ${where}`,
      ours: formatSeconds(ours),
      peer: `git add ${formatSeconds(git)}`,
      ratio: git / ours,
      target: `≤ ${formatSeconds(targetSeconds)}, ≥ 0.5`,
      met: ours <= targetSeconds && git / ours >= 0.5,
      note: `${bestNote(times('git'), times('svc'))}; CPU ${formatSeconds(cpu('svc'))} against ${formatSeconds(cpu('git'))}; git syncs none of them`
    }
  ]
}
