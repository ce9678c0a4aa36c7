import { hasLoopDisk, LoopDisk } from '../harness/loop-disk.ts'
import { writeSafetensors } from '../harness/model-files.ts'
import { formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'
import { Scratch } from '../harness/scratch.ts'
import { compareImport } from './import-against-tools.ts'

/** The minimum for xfs. */
const MIN_DISK_BYTES = 512 << 20

export const reflinkRow: Row = {
  name: 'reflink',
  summary: 'one large file on xfs (a loop device), where store and source share blocks',
  async run(bench) {
    const { largeBytes } = bench.profile
    const what = `one file of ${formatSize(largeBytes)}, shared blocks`
    if (!hasLoopDisk('xfs'))
      return [{ what, ours: '', peer: '', target: '≥ 0.92', note: 'not measured: needs root and mkfs.xfs' }]
    // room for the source, a copy by `cp`, and metadata; a reflinked store needs none
    const disk = new LoopDisk(MIN_DISK_BYTES + 3 * largeBytes, 'xfs')
    const scratch = new Scratch(disk.path)
    try {
      const folder = await scratch.folder()
      writeSafetensors(folder, 'model.safetensors', largeBytes)
      return [await compareImport({ ...bench, scratch }, { what, folder, sizeBytes: largeBytes, floor: 0.92 })]
    } finally {
      await bench.daemons.stopAll()
      scratch.remove()
      disk.close()
    }
  }
}
