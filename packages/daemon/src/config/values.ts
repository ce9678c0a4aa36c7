import { tryParseRange } from '@svc/internal-net'
import { ConfigError } from '../errors.ts'
import { absolutePath } from './path.ts'
import { globsOf } from './trust.ts'

// What the values of single keys become. Each throws a ConfigError that names its key.

/** An empty text counts as unset, as the XDG specification requires of variables. */
export const unlessEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text)

export const keysFile = (path: string | undefined): string | undefined =>
  unlessEmpty(path) && absolutePath(path!, '[mirror] s3_keys')

export const asIs = <T>(value: T): T => value

export const or =
  <T>(fallback: T) =>
  (value: T | undefined): T =>
    value ?? fallback

/** One of two words; the first, if there is none. */
export const eitherOf =
  <A extends string, B extends string>(key: string, first: A, second: B) =>
  (text: string = first): A | B => {
    if (text === first || text === second) return text as A | B
    throw new ConfigError(`${key} is ${JSON.stringify(text)}; write "${first}" or "${second}"`)
  }

export const milliseconds =
  (defaultSeconds: number) =>
  (seconds = defaultSeconds): number =>
    seconds * 1000

const MINUTE_MS = 60_000
const DAY_MS = 24 * 3600_000

/** At least a minute: a fresh proof is used a moment later. */
export const proofTime = (days = 30): number => Math.max(MINUTE_MS, days * DAY_MS)

export function storeId(text: string | undefined): string | undefined {
  const id = unlessEmpty(text)?.toLowerCase()
  if (id === undefined || /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id)) return id
  throw new ConfigError(`[store] expect is ${JSON.stringify(text)}; write the id of a store, as "svc status" shows it`)
}

export function hostNames(names: readonly string[] = []): readonly string[] {
  for (const name of names) {
    if (/^(?:[a-z\d](?:[a-z\d._-]*[a-z\d])?|\[[\da-f:.]+\])$/i.test(name)) continue
    throw new ConfigError(`[mirror] names has ${JSON.stringify(name)}; write host names or addresses, without a port`)
  }
  return names.map((name) => name.toLowerCase())
}

/** Whether the patterns name `owner/name`, without regard to case. */
export function repositories(patterns: readonly string[] = ['*']): (name: string) => boolean {
  for (const pattern of patterns) {
    if (pattern === '*' || /^[A-Za-z0-9][\w.-]*(?:\/(?:\*|[A-Za-z0-9][\w.-]*))?$/.test(pattern)) continue
    const rule = 'write "owner/name", "name", "owner/*" or "*"'
    throw new ConfigError(`[mirror] on_demand_allow names ${JSON.stringify(pattern)}; ${rule}`)
  }
  return globsOf(
    patterns.map((pattern) => (pattern === '*' ? '**' : pattern)),
    (what) => new ConfigError(`[mirror] on_demand_allow: ${what}`)
  )
}

export function addressRanges(texts: readonly string[] = []): readonly string[] {
  for (const text of texts)
    if (tryParseRange(text) === undefined)
      throw new ConfigError(
        `[swarm] trusted has ${JSON.stringify(text)}, expected an address range without bits beyond its prefix, e.g. "10.0.0.0/8" or "fd00::/8"`
      )
  return texts
}

export function zoneName(text: string | undefined): string | undefined {
  const zone = unlessEmpty(text)
  if (zone === undefined || /^[A-Za-z0-9._-]{1,64}$/.test(zone)) return zone
  throw new ConfigError(`[swarm] zone is ${JSON.stringify(zone)}, expected 1 to 64 letters, digits, ".", "_" and "-"`)
}
