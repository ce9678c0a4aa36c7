import { hasLoopDisk, LoopDisk } from '../harness/loop-disk.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { formatSize } from '../harness/report.ts'
import type { Bench, Line, Row } from '../harness/row.ts'
import { Scratch } from '../harness/scratch.ts'
import { compareImport } from './import-against-tools.ts'

/** xfs takes no less. */
const MIN_DISK_BYTES = 512 << 20

export const adoptRow: Row = {
  name: 'adopt',
  summary:
    'one large file of another tool taken over, where its blocks are copied, and on xfs (a loop device), where they are shared',
  async run(bench) {
    const { largeBytes } = bench.profile
    const copied = await adopt(bench, 'copied', 0.82)
    const what = `adopt one file of ${formatSize(largeBytes)}, blocks shared`
    if (!hasLoopDisk('xfs'))
      return [copied, { what, ours: '', peer: '', target: '≥ 0.92', note: 'not measured: needs root and mkfs.xfs' }]
    const disk = new LoopDisk(MIN_DISK_BYTES + 3 * largeBytes, 'xfs')
    const scratch = new Scratch(disk.path)
    try {
      return [copied, await adopt({ ...bench, scratch }, 'shared', 0.92)]
    } finally {
      await bench.daemons.stopAll()
      scratch.remove()
      disk.close()
    }
  }
}

async function adopt(bench: Bench, blocks: string, floor: number): Promise<Line> {
  const { scratch, profile } = bench
  const folder = await scratch.folder()
  const path = writeSafetensors(folder, 'model.safetensors', profile.largeBytes)
  const line = await compareImport(bench, {
    what: `adopt one file of ${formatSize(profile.largeBytes)}, blocks ${blocks}`,
    folder,
    sizeBytes: profile.largeBytes,
    floor,
    job: ['/v1/adopt', { as: 'bench/model', files: [{ name: 'model.safetensors', path }] }]
  })
  await scratch.drop(folder)
  return line
}
