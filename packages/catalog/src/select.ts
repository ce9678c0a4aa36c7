import { normalizedName, normalizedQuant } from '@svc/classify'
import { LibraryError, type SourceSelection } from '@svc/library/parts'
import type { ListedTorrent } from './listing.ts'

const MAX_CANDIDATES = 50

/**
 * The torrent of a listing that a request selects. `quant` selects the line whose name contains it (exact, else unique
 * prefix); the whole `dn` of a line works, too, for lines with the same quant. If requested, names are normalized first
 * (spec add.4). `quants` and `files` exclude lines: a torrent has one weights file, so exactly one line must be left.
 * @throws LibraryError `E_NOT_LISTED`, `E_INVALID` with the quants as candidates, `E_NO_MEMBER` for a selection
 *   that no line fits.
 */
export function selectEntry(
  entries: readonly ListedTorrent[],
  repo: string,
  quant: string | undefined,
  selection: SourceSelection
): ListedTorrent {
  const own = selectedEntries(linesOf(entries, repo, selection.normalizedNames), repo, selection)
  if (own.length === 0) {
    throw new LibraryError('E_NOT_LISTED', `the catalog does not list ${repo}; the name is "owner/name" as listed`, {
      candidates: unique(entries.map((entry) => entry.repo))
    })
  }
  if (quant === undefined) {
    if (own.length === 1) return own[0]!
    throw ambiguous(`the catalog lists ${own.length} torrents for ${repo}: choose one with "quant"`, own)
  }
  const wanted = selection.normalizedNames ? quant.toLowerCase() : quant
  for (const matches of [
    own.filter((entry) => entry.displayName === quant),
    own.filter((entry) => entry.quant === wanted),
    own.filter((entry) => entry.quant.startsWith(wanted))
  ]) {
    if (matches.length === 1) return matches[0]!
    if (matches.length > 1) throw ambiguous(`"${quant}" matches ${matches.length} torrents of ${repo}`, matches)
  }
  throw ambiguous(`the catalog has no torrent of ${repo} for "${quant}"`, own)
}

export function linesOf(entries: readonly ListedTorrent[], repo: string, normalizedNames: boolean): ListedTorrent[] {
  return quantsRead(distinct(ofRepo(entries, repo)), normalizedNames)
}

/** Entries with the quants that an import would make of them. */
export const quantsRead = (entries: readonly ListedTorrent[], normalizedNames: boolean): ListedTorrent[] =>
  entries.map((entry) =>
    normalizedNames ? { ...entry, quant: normalizedQuant(normalizedName(fileOf(entry))) } : { ...entry }
  )

const fileOf = ({ displayName }: ListedTorrent): string => displayName.slice(displayName.lastIndexOf('/') + 1)

function selectedEntries(
  own: readonly ListedTorrent[],
  repo: string,
  { normalizedNames, quants, files }: SourceSelection
): readonly ListedTorrent[] {
  if (own.length === 0) return own
  const wanted = quants?.map((quant) => quant.toLowerCase())
  const absent = wanted?.find((quant) => !own.some((entry) => entry.quant === quant))
  const nameOf = (entry: ListedTorrent): string => (normalizedNames ? normalizedName(fileOf(entry)) : fileOf(entry))
  const left = own.filter((entry) => (wanted?.includes(entry.quant) ?? true) && (files?.(nameOf(entry)) ?? true))
  if (absent === undefined && left.length > 0) return left
  const what = absent === undefined ? 'a matching file' : `the quant ${JSON.stringify(absent.slice(0, 80))}`
  throw new LibraryError('E_NO_MEMBER', `the catalog has no torrent of ${repo} with ${what}`, {
    candidates: unique(own.map(absent === undefined ? nameOf : (entry) => entry.quant))
  })
}

/** Matches the listed spelling; ignores case only if that is not ambiguous. */
function ofRepo(entries: readonly ListedTorrent[], repo: string): ListedTorrent[] {
  const exact = entries.filter((entry) => entry.repo === repo)
  if (exact.length > 0) return exact
  const folded = entries.filter((entry) => entry.repo.toLowerCase() === repo.toLowerCase())
  return new Set(folded.map((entry) => entry.repo)).size === 1 ? folded : []
}

const distinct = (entries: readonly ListedTorrent[]): ListedTorrent[] => [
  ...new Map(entries.map((entry) => [entry.infohash, entry])).values()
]

const unique = (names: readonly string[]): string[] => [...new Set(names)].sort().slice(0, MAX_CANDIDATES)

function ambiguous(message: string, entries: readonly ListedTorrent[]): LibraryError {
  const quants = entries.map((entry) => entry.quant)
  const names = new Set(quants).size === quants.length ? quants : entries.map((entry) => entry.displayName)
  return new LibraryError('E_INVALID', message, { candidates: unique(names) })
}
