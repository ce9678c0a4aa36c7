import type { Inventory, ModelMember, Status } from '@svc/client/protocol'
import { formatBytes } from './format.ts'
import { TEXTS } from './texts.ts'

/** Whether others get a model: now or soon; not since its owner says so, svc holds it back, or for another reason. */
type SharingState = 'shared' | 'soon' | 'private' | 'held' | 'none'

/** A row of the table: one quant of a repository. */
export interface ModelRow {
  /** `ns/name:quant` */
  readonly ref: string
  readonly repo: string
  readonly quant: string
  readonly member: ModelMember
  readonly sharing: SharingState
  /** Why it is not shared. */
  readonly reason: string
}

export const COLUMNS = ['name', 'quant', 'size', 'state', 'sharing', 'companions', 'used'] as const
export type Column = (typeof COLUMNS)[number]
export const FILTERS = ['all', 'complete', 'away', 'shared', 'held', 'private', 'newer'] as const
export type Filter = (typeof FILTERS)[number]

export interface Selection {
  readonly words: string
  readonly filter: Filter
  readonly column: Column
  readonly isDescending: boolean
}

/** A row for each quant, in the order of the inventory. */
export function rowsOf(inventory: Inventory | undefined, status: Status | undefined): readonly ModelRow[] {
  const seeded = new Set(
    status?.swarm.torrents.filter(({ state }) => state === 'seeding').map(({ manifestDigest }) => manifestDigest)
  )
  const held = new Map(status?.swarm.heldBack.map(({ manifestDigest, reason }) => [manifestDigest, reason]))
  return (inventory?.namespaces ?? []).flatMap(({ ns, name, members }) =>
    members.map((member): ModelRow => {
      const repo = `${ns}/${name}`
      const sharing = sharingOf(member, seeded, held, status)
      const reason = sharing === 'shared' ? '' : reasonOf(member, held, status)
      return { ref: `${repo}:${member.quant}`, repo, quant: member.quant, member, sharing, reason }
    })
  )
}

function sharingOf(
  { manifest, private: isPrivate, withheld, complete }: ModelMember,
  seeded: ReadonlySet<string | undefined>,
  held: ReadonlyMap<string, string>,
  status: Status | undefined
): SharingState {
  if (isPrivate) return 'private'
  if (seeded.has(manifest)) return 'shared'
  if (withheld !== undefined || held.has(manifest)) return 'held'
  return complete && status?.swarm.enabled === true && status.swarm.seed ? 'soon' : 'none'
}

function reasonOf(member: ModelMember, held: ReadonlyMap<string, string>, status: Status | undefined): string {
  if (member.private) return TEXTS.models.reasonPrivate
  const known = member.withheld?.reason ?? held.get(member.manifest)
  if (known !== undefined) return known
  if (status?.swarm.enabled === false) return TEXTS.models.reasonOff
  if (status?.swarm.seed === false) return TEXTS.models.reasonNoSeed
  if (!member.complete) return TEXTS.models.reasonAway
  if (status === undefined) return ''
  return status.swarm.verifying === undefined ? TEXTS.models.reasonSoon : TEXTS.models.reasonVerifying
}

/** Complete, damaged, or how much is missing. `away` was freed on purpose, and can be fetched again. */
export function stateOf({ complete, damaged, away, missingBytes = 0 }: ModelMember): string {
  if (damaged === true) return TEXTS.models.damaged
  if (complete) return TEXTS.models.complete
  return (away === true ? TEXTS.models.away : TEXTS.models.missing)(formatBytes(missingBytes))
}

const PASSES: Readonly<Record<Filter, (row: ModelRow) => boolean>> = {
  all: () => true,
  complete: ({ member }) => member.complete,
  away: ({ member }) => !member.complete,
  shared: ({ sharing }) => sharing === 'shared',
  held: ({ sharing }) => sharing === 'held',
  private: ({ sharing }) => sharing === 'private',
  newer: ({ member }) => member.newer !== undefined
}

const KEYS: Readonly<Record<Column, (row: ModelRow) => string | number>> = {
  name: ({ ref }) => ref,
  quant: ({ quant }) => quant,
  size: ({ member }) => member.sizeBytes,
  state: ({ member }) => (member.complete ? 0 : 1 + (member.missingBytes ?? 0)),
  sharing: ({ sharing }) => sharing,
  companions: ({ member }) => (member.companions === undefined ? 1 : 0),
  used: ({ member }) => member.lastUsedAt ?? member.importedAt ?? ''
}

/** The rows that pass the filter and have all words in their reference, sorted stably. */
export function selectRows(rows: readonly ModelRow[], { words, filter, column, isDescending }: Selection): ModelRow[] {
  const parts = words.toLowerCase().split(/\s+/)
  const key = KEYS[column]
  const sign = isDescending ? -1 : 1
  return rows
    .filter((row) => PASSES[filter](row) && parts.every((part) => row.ref.toLowerCase().includes(part)))
    .map((row) => [key(row), row] as const)
    .sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0))
    .map(([, row]) => row)
}
