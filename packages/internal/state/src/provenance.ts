import { isDeepStrictEqual } from 'node:util'
import { type Clock, systemClock, timestampOf } from '@svc/internal-clock'
import { type Advice, type Advise, NO_ADVICE } from './library-error.ts'
import { exactly, listOf, oneOf, optional, text, yes } from './strict.ts'

/** The kinds of credentials that a source may have been shown. */
type Credential = 'hub-token' | 'registry-login' | 'webseed-key'

/**
 * Who may have an artifact's bytes, and why (spec add.37). It is set where a credential is used or a private source is
 * read, and kept with the bytes. The artifact's `source` names the repository.
 */
export interface Provenance {
  /**
   * `own`: the owner had it on this machine. `public`: the source gave it without a credential, or said that everybody
   * may have it. `restricted`: the source gave it to a credential of the owner's, or said that not everybody may have
   * it. `unknown`: it could not be determined.
   */
  readonly access: 'own' | 'public' | 'restricted' | 'unknown'
  /** The credential of restricted bytes, where one was used. */
  readonly by?: Credential
  /** UTC, RFC 3339: when the hub last confirmed that it is public. */
  readonly confirmedPublicAt?: string
  /** Files whose bytes belong to an artifact that is withheld here, and that this source was not seen to give. */
  readonly unproven?: readonly string[]
  /** Weights that no runtime can load: a fact of the bytes, whoever gives them. */
  readonly malformed?: readonly string[]
  /** Its exporter marked it as not for others (spec add.39). */
  readonly marked?: true
  /** The owner's decision, and when; no time where a damaged record could have held it. */
  readonly decision?: { readonly is: 'private' | 'shared'; readonly at?: string }
}

/** Names in {@link Provenance.unproven} and {@link Provenance.malformed}; a longer list says no more. */
export const MAX_UNPROVEN = 100

/** The ways by which bytes leave this machine. */
export const DOORS = ['swarm', 'webseed', 'hub-mirror', 'oci-mirror', 's3-mirror', 'publish', 'export', 'push'] as const
export type Door = (typeof DOORS)[number]

/** Why an artifact is withheld. */
export type WithheldFact =
  | 'no-record'
  | 'damaged-record'
  | 'private'
  | 'restricted'
  | 'marked'
  | 'unproven'
  | 'unknown-access'
  | 'malformed'

/** May an artifact's bytes leave by a door? */
export type Verdict = { readonly given: true } | ({ readonly given: false; readonly fact: WithheldFact } & Withholding)

/** Why it is withheld, and what the owner can do about it. */
export interface Withholding {
  readonly reason: string
  readonly advice?: Advice
}

type WithProvenance = { readonly provenance: Provenance }

/** What the owner shares with the swarm. */
export interface SharingPolicy {
  readonly seed: boolean
  /** Also what was fetched with a credential. */
  readonly seedRestricted: boolean
}

/**
 * The only place that decides whether an artifact may be given to others (spec add.37, swarm.4). Whatever is not known
 * is withheld: an artifact without a record, or `damaged` for one whose record cannot be read.
 */
export function verdictOf(
  state: WithProvenance | 'damaged' | undefined,
  door: Door,
  { seedRestricted }: Pick<SharingPolicy, 'seedRestricted'> = { seedRestricted: false }
): Verdict {
  if (state === undefined) return withheld('no-record', 'its origin is not recorded here')
  if (state === 'damaged') return withheld('damaged-record', 'the record of its origin is damaged')
  const { access, marked, malformed = [], unproven = [], decision } = state.provenance
  const doubt = 'it is not known whether it is public'
  const also = access === 'unknown' ? `, and ${doubt}` : ''
  if (decision?.is === 'private') return withheld('private', `it is private${also}`, RELEASE)
  if (access === 'restricted' && !(seedRestricted && (door === 'swarm' || door === 'webseed')))
    return withheld('restricted', restrictedReason(state.provenance), { to: 'share-restricted' })
  if (decision?.is === 'shared') return GIVEN
  if (marked === true) return withheld('marked', 'its exporter marked it as not to be shared', RELEASE)
  if (malformed.length > 0) return withheld('malformed', `no runtime can load ${quoted(malformed)}`, RELEASE)
  if (unproven.length > 0) {
    const files = quoted(unproven)
    return withheld(
      'unproven',
      `the bytes of ${files} came from a source that is not public, and the latest source has not sent them`,
      RELEASE
    )
  }
  if (access === 'unknown') return withheld('unknown-access', doubt, RELEASE)
  return GIVEN
}

const quoted = (names: readonly string[]): string => names.map((name) => JSON.stringify(name)).join(', ')

const GIVEN: Verdict = { given: true }
const RELEASE: Advice = { to: 'share-anyway' }
const withheld = (fact: WithheldFact, reason: string, advice?: Advice): Verdict => ({
  given: false,
  fact,
  reason,
  ...(advice && { advice })
})

/** Why something is withheld, for people who have this program. */
export const toldWithheld = ({ reason, advice }: Withholding, advise: Advise): string =>
  advice === undefined ? reason : reason + advise(advice)

const CREDENTIALS: Readonly<Record<Credential, string>> = {
  'hub-token': 'a token',
  'registry-login': 'a login',
  'webseed-key': 'a key'
}

const restrictedReason = ({ by }: Provenance): string =>
  `it was fetched ${by === undefined ? 'from a source that is not public' : `with ${CREDENTIALS[by]}`}`

/** Why an artifact is not shared with the swarm now; undefined when it may be. */
export function heldBackReason(
  state: WithProvenance | 'damaged' | undefined,
  config: Pick<SharingPolicy, 'seed' | 'seedRestricted'>,
  advise: Advise = NO_ADVICE
): string | undefined {
  if (!config.seed) return toldWithheld({ reason: 'sharing is off', advice: { to: 'turn-sharing-on' } }, advise)
  const verdict = verdictOf(state, 'swarm', config)
  return verdict.given ? undefined : toldWithheld(verdict, advise)
}

/**
 * The notice of an import about an artifact that others caused to be withheld, with what shares it (spec add.39); undefined if it may leave, or if the owner's decision or credential withholds it.
 */
export function withheldNotice(
  ref: string,
  state: WithProvenance | 'damaged' | undefined,
  advise: Advise
): string | undefined {
  const verdict = verdictOf(state, 'export')
  if (verdict.given || !NOTICED.has(verdict.fact)) return undefined
  return `${ref} is withheld from others: ${verdict.reason}${advise({ to: 'share-anyway', ref })}`
}

const NOTICED: ReadonlySet<WithheldFact> = new Set(['marked', 'unproven', 'malformed'] satisfies WithheldFact[])

/** Whether the owner marked an artifact (spec add.10). */
export const isPrivate = ({ provenance }: WithProvenance): boolean => provenance.decision?.is === 'private'

/** Whether access to an artifact's source was restricted (spec swarm.5). */
export const isRestricted = ({ provenance }: WithProvenance): boolean => provenance.access === 'restricted'

/** A source's provenance, with the owner's mark of this import. */
export const withMark = (provenance: Provenance, isMarkedPrivate: boolean, clock: Clock): Provenance =>
  isMarkedPrivate ? { ...provenance, decision: decided('private', clock) } : provenance

/** The owner's decision now. */
export const decided = (is: 'private' | 'shared', clock = systemClock): NonNullable<Provenance['decision']> => ({
  is,
  at: timestampOf(clock)
})

/** An import of an artifact that has a record: the new provenance's source, and the bytes that were here. */
export interface Reimport {
  /** From peers and webseeds by its pin, which tells nothing of the model's origin. */
  readonly isPinned: boolean
  /** Its blobs were all here before. */
  readonly wasComplete: boolean
}

/**
 * The provenance after another import of the same artifact. A credential used for its bytes counts until a public
 * source gives them; the owner's decision counts until the owner changes it.
 */
export function mergedProvenance(before: Provenance, now: Provenance, { isPinned, wasComplete }: Reimport): Provenance {
  const facts = isPinned ? pinnedFacts(before, now, wasComplete) : latestFacts(before, now)
  const { decision: _, marked: __, ...rest } = facts
  const decision = now.decision ?? before.decision
  // a mark from elsewhere does not restrict an artifact that was here
  const marked = isPinned && wasComplete ? before.marked : (now.marked ?? before.marked)
  const malformed = now.malformed ?? before.malformed
  return {
    ...rest,
    ...(malformed !== undefined && { malformed }),
    ...(marked !== undefined && { marked }),
    ...(decision !== undefined && { decision })
  }
}

function pinnedFacts(before: Provenance, now: Provenance, wasComplete: boolean): Provenance {
  if (wasComplete) return before
  if (now.unproven !== undefined) {
    const unproven = [...new Set([...(before.unproven ?? []), ...now.unproven])].sort().slice(0, MAX_UNPROVEN)
    const { unproven: _, ...rest } = now
    return { ...pinnedFacts(before, rest, wasComplete), unproven }
  }
  if (now.access !== 'restricted' || before.access === 'restricted') return before
  const { confirmedPublicAt: _, ...rest } = before
  return { ...rest, access: 'restricted', ...(now.by !== undefined && { by: now.by }) }
}

function latestFacts(before: Provenance, now: Provenance): Provenance {
  const isWorse = now.access === 'unknown' && (before.access === 'public' || before.access === 'restricted')
  if (isWorse) return before
  // whoever only names bytes gives none: the credential that fetched them counts
  if (before.access === 'restricted' && now.access !== 'restricted' && now.unproven !== undefined) return before
  if (now.access !== 'public' || before.confirmedPublicAt === undefined) return now
  return { ...now, confirmedPublicAt: now.confirmedPublicAt ?? before.confirmedPublicAt }
}

/**
 * Of an artifact in a restored backup that does not have all of its files: what it says of the absent ones is nobody's word,
 * and only what withholds the artifact counts.
 * @param recorded what its record holds @param lacking names of absent files, but those that are asked about when they come
 */
export function restoredProvenance(recorded: unknown, lacking: readonly string[]): unknown {
  if (PROVENANCE(recorded, '') !== undefined) return recorded
  const { decision, confirmedPublicAt: _, ...facts } = recorded as Provenance
  const unproven = [...new Set([...(facts.unproven ?? []), ...lacking])].sort().slice(0, MAX_UNPROVEN)
  return {
    ...facts,
    ...(lacking.length > 0 && facts.access !== 'restricted' && { access: 'unknown' }),
    ...(unproven.length > 0 && { unproven }),
    ...(decision?.is === 'private' && { decision })
  } satisfies Provenance
}

/** Whether two states of an artifact permit the same doors. */
export const sameStanding = (a: WithProvenance, b: WithProvenance): boolean =>
  isDeepStrictEqual(standing(a), standing(b))

const standing = ({ provenance: { confirmedPublicAt: _, decision, ...rest } }: WithProvenance) => ({
  ...rest,
  is: decision?.is
})

/** Its form in a record. A key that this version does not know could withhold the artifact, so it is damage. */
export const PROVENANCE = exactly<Provenance>({
  access: oneOf('own', 'public', 'restricted', 'unknown'),
  by: optional(oneOf(...Object.keys(CREDENTIALS))),
  confirmedPublicAt: optional(text),
  unproven: optional(listOf(text)),
  malformed: optional(listOf(text)),
  marked: yes,
  decision: optional(
    exactly<NonNullable<Provenance['decision']>>({ is: oneOf('private', 'shared'), at: optional(text) })
  )
})
