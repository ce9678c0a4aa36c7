import { compareText } from '@svc/ref'
import { folderOf } from './names.ts'

/** What the name of a shard says. */
export interface ShardName {
  readonly base: string
  /** The shard's number: 1 to `total` in a proper set. */
  readonly part: number
  readonly total: number
}

const SHARD = /^(.*)[-_](\d{5,6})[-_]of[-_](\d{5,6})$/s

/**
 * Parses the shard suffix (`-00001-of-00003`, `_00001_of_00003`, five or six digits) of a name without its extension.
 */
export function parseShardName(stem: string): ShardName | undefined {
  const match = SHARD.exec(stem)
  return match ? { base: match[1]!, part: Number(match[2]), total: Number(match[3]) } : undefined
}

/** A shard of a set, by its path. */
export interface Shard extends ShardName {
  readonly name: string
  /** The set it belongs to: same folder, base, extension and total. */
  readonly group: string
}

/** The shard that a weights path names, or undefined. Numbers outside 1..total do not count as shard numbers. */
export function shardOf(name: string): Shard | undefined {
  const shard = shardFromZero(name)
  return shard === undefined || shard.part < 1 ? undefined : shard
}

/** The shard that a path names if numbers begin at 0: 0 to `total`, of which a set has 0 to `total` - 1. */
export function shardFromZero(name: string): Shard | undefined {
  const folder = folderOf(name)
  const dot = name.lastIndexOf('.')
  const shard = parseShardName(name.slice(folder.length, dot))
  if (!shard || shard.part > shard.total) return undefined
  return { ...shard, name, group: `${folder}${shard.base}*${shard.total}${name.slice(dot)}` }
}

export interface BrokenSet {
  readonly group: string
  readonly names: readonly string[]
  /** The missing numbers, e.g. `2-4, 7`; empty when the only defect is duplicates. */
  readonly missing: string
  /** Numbers with more than one name. */
  readonly repeated: readonly number[]
}

const MAX_RUNS = 20

/** The sets with missing or duplicate shards, sorted by group. */
export function brokenSets(shards: Iterable<Shard>): BrokenSet[] {
  const broken: BrokenSet[] = []
  for (const [group, set] of Map.groupBy(shards, (shard) => shard.group)) {
    const sorted = set.map((shard) => shard.part).sort((a, b) => a - b)
    const parts = [...new Set(sorted)]
    const repeated = [...new Set(sorted.filter((part, i) => part === sorted[i - 1]))]
    if (parts.length === set[0]!.total && repeated.length === 0) continue
    broken.push({
      group,
      names: set.map((shard) => shard.name).sort(compareText),
      missing: missingRuns(parts, set[0]!.total),
      repeated
    })
  }
  return broken.sort((a, b) => compareText(a.group, b.group))
}

/**
 * The numbers of 1..total that are missing in the sorted `parts`, as ranges: even a hostile total of 999999 gives a
 * short text.
 */
function missingRuns(parts: readonly number[], total: number): string {
  const runs: string[] = []
  let next = 1
  for (const part of [...parts, total + 1]) {
    if (part > next) runs.push(part - 1 === next ? `${next}` : `${next}-${part - 1}`)
    next = part + 1
  }
  return runs.length > MAX_RUNS ? `${runs.slice(0, MAX_RUNS).join(', ')}, …` : runs.join(', ')
}
