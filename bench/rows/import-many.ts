import { writeCode, writeGguf, writeSafetensors } from '../harness/model-files.ts'
import { formatSize } from '../harness/report.ts'
import type { Row } from '../harness/row.ts'
import { compareImport } from './import-against-tools.ts'

const CODE_BYTES = 10 << 10
const SHARD_BYTES = 1 << 20

const number = (value: number): string => String(value).padStart(5, '0')

export const importManyRow: Row = {
  name: 'import-many',
  summary: 'many small files, shards of 1 MiB, and GGUF files, against openssl dgst, and against cp and sync',
  async run(bench) {
    const { scratch, profile } = bench
    const { smallFiles, ggufFiles, ggufBytes } = profile
    const code = await scratch.folder()
    writeSafetensors(code, 'model.safetensors', SHARD_BYTES)
    for (let i = 1; i < smallFiles; i++) writeCode(code, `modeling_part${number(i)}.py`, CODE_BYTES)
    const small = await compareImport(bench, {
      what: `${smallFiles} files of ${formatSize(CODE_BYTES)}`,
      folder: code,
      sizeBytes: (smallFiles - 1) * CODE_BYTES + SHARD_BYTES
    })
    await scratch.drop(code)

    const shards = await scratch.folder()
    for (let i = 1; i <= smallFiles; i++)
      writeSafetensors(shards, `model-${number(i)}-of-${number(smallFiles)}.safetensors`, SHARD_BYTES)
    const sharded = await compareImport(bench, {
      what: `${smallFiles} shards of ${formatSize(SHARD_BYTES)}`,
      folder: shards,
      sizeBytes: smallFiles * SHARD_BYTES
    })
    await scratch.drop(shards)

    const gguf = await scratch.folder()
    for (let i = 0; i < ggufFiles; i++) writeGguf(gguf, `model-q${i + 2}_k.gguf`, ggufBytes)
    const quants = await compareImport(bench, {
      what: `${ggufFiles} GGUF of ${formatSize(ggufBytes)}`,
      folder: gguf,
      sizeBytes: ggufFiles * ggufBytes
    })
    await scratch.drop(gguf)
    return [small, sharded, quants]
  }
}
