import type { ArtifactState } from './artifact-record.ts'
import { mergeHints } from './hints.ts'
import { type ArtifactSource, mergedFollowed, mergedSource } from './origin.ts'
import { mergedProvenance, type Provenance, verdictOf } from './provenance.ts'

/** What an import records about an artifact. Its completeness is determined elsewhere. */
export type ArtifactImport = Omit<ArtifactState, 'pinned' | 'importedAt' | 'incomplete' | 'kept' | 'away' | 'copies'> &
  Partial<Pick<ArtifactState, 'pinned'>>

/**
 * The record of an artifact after an import at `now`. All comes from this import, but hints (100 per list, new ones first)
 * and the data of a BitTorrent v1 swarm are kept, and who may have the bytes is merged (spec add.37). A pinned import knows
 * nothing of the origin, and overrides no earlier facts; it starts without blobs: until these are here the artifact is
 * incomplete, and its future name recorded.
 */
export function afterImport(
  standing: ArtifactState | 'damaged' | undefined,
  { futureName: asked, choices: chosen, ...state }: ArtifactImport,
  now: string
): ArtifactState {
  const before = standing === 'damaged' ? undefined : standing
  const hints = before === undefined ? state.hints : mergeHints(state.hints, before.hints)
  const record = state.record ?? before?.record
  const isPinned = state.source.kind === 'bt'
  const origin = isPinned && before !== undefined ? before : state
  const incomplete = isPinned && (before === undefined || before.incomplete === true)
  const kept = isPinned ? before?.futureName : undefined
  const futureName = incomplete ? (asked ?? kept) : kept
  const provenance = standing === undefined ? state.provenance : provenanceAfter(standing, state, isPinned)
  const companions = { ...keptBeside(before, { ...state, provenance }), ...state.companions }
  return {
    ...wantedBeside(before, isPinned),
    ...state,
    ...(Object.keys(companions).length > 0 && { companions }),
    ...choicesAfter(before?.choices, chosen),
    source: { ...sourceAfter(before?.source, origin.source), ...mergedFollowed(before?.source, state.source) },
    provenance,
    pinned: state.pinned === true || before?.pinned === true,
    hints,
    importedAt: now,
    beganAt: whenBegun(before, state) ?? now,
    ...(record !== undefined && { record }),
    ...(incomplete && { incomplete }),
    ...(futureName !== undefined && { futureName })
  }
}

/** What an import of everything chose is not recorded. */
function choicesAfter(...made: readonly ArtifactState['choices'][]): Pick<ArtifactState, 'choices'> {
  const all: NonNullable<ArtifactState['choices']> = Object.assign({}, ...made)
  const choices = Object.fromEntries(Object.entries(all).filter(([, choice]) => Object.keys(choice).length > 0))
  return Object.keys(choices).length === 0 ? {} : { choices }
}

/**
 * The companions of earlier imports. An import that opens an artifact to everybody proves nothing about small files that
 * came with a credential or a mark: it keeps only those that its own source gives as well.
 */
function keptBeside(before: ArtifactState | undefined, next: ArtifactImport): ArtifactState['companions'] {
  const isOpened = before !== undefined && !verdictOf(before, 'export').given && verdictOf(next, 'export').given
  if (!isOpened) return before?.companions
  const given = new Set(Object.values(next.companions ?? {}))
  return Object.fromEntries(Object.entries(before.companions ?? {}).filter(([, digest]) => given.has(digest)))
}

/** A resumed pinned import keeps the time of its record. */
function whenBegun(before: ArtifactState | undefined, { source, beganAt }: ArtifactImport): string | undefined {
  const goesOn = before?.incomplete === true || before?.futureName !== undefined
  return source.kind === 'bt' && goesOn ? before.beganAt : beganAt
}

/** The fields that an import does not set. Only a pinned import can leave an artifact away: it has yet to bring the bytes. */
const wantedBeside = (
  { futureCompanions, kept, away, copies }: Partial<ArtifactState> = {},
  isPinned = false
): Partial<ArtifactState> => ({
  ...(futureCompanions && { futureCompanions }),
  ...(kept && { kept }),
  ...(away && isPinned && { away }),
  ...(copies && { copies })
})

/** The most restrictive that a damaged record could have been: another import and the owner's decision change it. */
export const OF_DAMAGED: Provenance = { access: 'unknown', decision: { is: 'private' } }

/** A torrent that was seeded once can be seeded again, wherever the model came from since. */
function sourceAfter(before: ArtifactSource | undefined, now: ArtifactSource): ArtifactSource {
  const bittorrentV1 = now.bittorrentV1 ?? before?.bittorrentV1
  return { ...mergedSource(before, now), ...(bittorrentV1 !== undefined && { bittorrentV1 }) }
}

function provenanceAfter(standing: ArtifactState | 'damaged', now: ArtifactImport, isPinned: boolean): Provenance {
  if (standing === 'damaged') return mergedProvenance(OF_DAMAGED, now.provenance, { isPinned, wasComplete: true })
  const wasComplete = standing.incomplete !== true
  const merged = mergedProvenance(standing.provenance, now.provenance, { isPinned, wasComplete })
  if (!isPinned && bringsDoubt(standing, now)) return doubted(merged, now.provenance)
  return merged
}

/** What the owner decided was said of other files: that they are shared no longer counts, that they are private does. */
function doubted({ confirmedPublicAt: _, decision, ...rest }: Provenance, now: Provenance): Provenance {
  const stays = now.decision ?? (decision?.is === 'private' ? decision : undefined)
  const access = rest.access === 'restricted' ? 'restricted' : 'unknown'
  return { ...rest, access, ...(stays !== undefined && { decision: stays }) }
}

/**
 * Small files leave with their artifact. Those that nobody says may leave, such as of a cache that was adopted without a connection,
 * withhold it until the source confirms them.
 */
function bringsDoubt({ provenance, companions = {}, source }: ArtifactState, now: ArtifactImport): boolean {
  const isGiven = provenance.access === 'public' || provenance.decision?.is === 'shared'
  if (!isGiven || now.provenance.access !== 'unknown') return false
  const known = new Set([...Object.values(companions), source.companions])
  return Object.values(now.companions ?? {}).some((digest) => !known.has(digest))
}
