import { writeSafetensors } from '../harness/model-files.ts'
import { formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'
import { compareImport } from './import-against-tools.ts'

export const importRow: Row = {
  name: 'import',
  summary: 'one large local file against openssl dgst, and against cp and sync',
  async run(bench) {
    const { scratch, profile } = bench
    const folder = await scratch.folder()
    writeSafetensors(folder, 'model.safetensors', profile.largeBytes)
    return [
      await compareImport(bench, {
        what: `one file of ${formatSize(profile.largeBytes)}`,
        folder,
        sizeBytes: profile.largeBytes
      })
    ]
  }
}
