const SHARD = /[-_]\d{5,6}[-_]of[-_]\d{5,6}$/
const QUANT = /[-._](?:ud-)?(?:i?q|tq|bf|f|fp|mx)\d[a-z0-9_]*$/i

/** A model's name with its tag. Quants stay out of names, and `latest` tells nothing apart. */
export function taggedName(name: string, tag: string): string {
  const version = `-${tag}`.replace(QUANT, '')
  return tag === '' || tag === 'latest' || version === '' ? name : `${name}${version}`
}

/** The name of a weights file without extension, shard and quant: the common part of the files of one model. */
export function modelBase(file: string): string {
  const stem = file.slice(file.lastIndexOf('/') + 1).replace(/\.(?:gguf|safetensors)$/i, '')
  const base = stem
    .replace(/^mmproj[-_.]/i, '')
    .replace(SHARD, '')
    .replace(QUANT, '')
  return base === '' ? stem : base
}
