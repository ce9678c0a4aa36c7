import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { normalizedName, shardOf } from '@svc/classify'

/** A glob that matches one name. */
export const escapeGlob = (name: string): string => name.replace(/[\\*?[\]{}()!+@|^$]/g, '\\$&')

/** The glob of `--file`: without a folder, it matches in any. */
export const inAnyFolder = (glob: string): string => (glob.includes('/') ? glob : `**/${glob}`)

/** Globs for a file of a repository, by its name there or as an import names it; a shard stands for its set. */
export function globsOfFile(path: string): readonly string[] {
  const folder = path.slice(0, path.lastIndexOf('/') + 1)
  const names = new Set([path, folder + normalizedName(path.slice(folder.length))])
  const globs = [...names].map((name) => {
    const glob = escapeGlob(name)
    return shardOf(name) === undefined ? glob : glob.replace(/([-_])\d{5,6}([-_]of[-_]\d{5,6}\.[^.]+)$/, '$1*$2')
  })
  const hasIndex = path.endsWith('.safetensors') && shardOf(path) !== undefined
  return hasIndex ? [...globs, escapeGlob(`${folder}model.safetensors.index.json`)] : globs
}

/** Paths of files on this machine, with the other shards of a set, and the index that lies beside safetensors. */
export function withShards(paths: readonly string[]): string[] {
  const all = paths.flatMap((path) => {
    const shard = shardOf(basename(path))
    if (shard === undefined || !existsSync(path)) return [path]
    const others = readdirSync(dirname(path)).filter((name) => shardOf(name)?.group === shard.group)
    const index = join(dirname(path), 'model.safetensors.index.json')
    const beside = path.endsWith('.safetensors') && existsSync(index) ? [index] : []
    return [path, ...others.map((name) => join(dirname(path), name)), ...beside]
  })
  return [...new Set(all)]
}
