const SHARD = /[-_]\d{5,6}[-_]of[-_]\d{5,6}$/
const QUANT = /[-._](?:ud-)?(?:i?q|tq|bf|f|fp|mx)\d[a-z0-9_]*$/i

/** The name of a weights file without extension, shard and quant: the common part of the files of one model. */
export function modelBase(file: string): string {
  const stem = file.slice(file.lastIndexOf('/') + 1).replace(/\.(?:gguf|safetensors)$/i, '')
  const base = stem
    .replace(/^mmproj[-_.]/i, '')
    .replace(SHARD, '')
    .replace(QUANT, '')
  return base === '' ? stem : base
}
