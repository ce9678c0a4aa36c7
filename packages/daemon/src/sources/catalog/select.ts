import { DaemonError } from '../../errors.ts'
import type { CatalogEntry } from './listing.ts'

const MAX_CANDIDATES = 50

/**
 * The one torrent of a listing that a request means. `quant` picks the line whose name yields it (exact, else unique
 * prefix); the whole `dn` of a line is taken as well, for lines whose names yield the same quant.
 * @throws DaemonError `E_UNKNOWN_REF` (400), `E_BAD_REQUEST` with the quants as candidates.
 */
export function selectEntry(entries: readonly CatalogEntry[], repo: string, quant: string | undefined): CatalogEntry {
  const own = distinct(ofRepo(entries, repo))
  if (own.length === 0) {
    throw new DaemonError('E_UNKNOWN_REF', `the catalog does not list ${repo}; the name is "owner/name" as listed`, {
      status: 400,
      candidates: unique(entries.map((entry) => entry.repo))
    })
  }
  if (quant === undefined) {
    if (own.length === 1) return own[0]!
    throw ambiguous(`the catalog lists ${own.length} torrents for ${repo}: say which with "quant"`, own)
  }
  for (const matches of [
    own.filter((entry) => entry.displayName === quant),
    own.filter((entry) => entry.quant === quant),
    own.filter((entry) => entry.quant.startsWith(quant))
  ]) {
    if (matches.length === 1) return matches[0]!
    if (matches.length > 1) throw ambiguous(`"${quant}" means ${matches.length} torrents of ${repo}`, matches)
  }
  throw ambiguous(`the catalog has no torrent of ${repo} for "${quant}"`, own)
}

/** As listed; another case only where that is not ambiguous. */
function ofRepo(entries: readonly CatalogEntry[], repo: string): CatalogEntry[] {
  const exact = entries.filter((entry) => entry.repo === repo)
  if (exact.length > 0) return exact
  const folded = entries.filter((entry) => entry.repo.toLowerCase() === repo.toLowerCase())
  return new Set(folded.map((entry) => entry.repo)).size === 1 ? folded : []
}

const distinct = (entries: readonly CatalogEntry[]): CatalogEntry[] => [
  ...new Map(entries.map((entry) => [entry.infohash, entry])).values()
]

const unique = (names: readonly string[]): string[] => [...new Set(names)].sort().slice(0, MAX_CANDIDATES)

function ambiguous(message: string, entries: readonly CatalogEntry[]): DaemonError {
  const quants = entries.map((entry) => entry.quant)
  const names = new Set(quants).size === quants.length ? quants : entries.map((entry) => entry.displayName)
  return new DaemonError('E_BAD_REQUEST', message, { candidates: unique(names) })
}
