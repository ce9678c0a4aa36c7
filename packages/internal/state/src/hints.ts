import { type DialPolicy, isPort, tryParseAddress } from '@svc/internal-net'
import { LibraryError } from './library-error.ts'
import type { SwarmHints } from './origin.ts'

const MAX_HINTS = 100
const MAX_HINT_CHARACTERS = 2_048

/** Validates a list of hints in a request body. @throws LibraryError `E_INVALID` naming the field. */
export function checkedHints(
  values: readonly string[],
  field: string,
  expected: string,
  isHint: (value: string) => boolean
): readonly string[] {
  if (values.length > MAX_HINTS)
    throw new LibraryError('E_INVALID', `the field "${field}" has more than ${MAX_HINTS} entries`)
  for (const value of values) {
    if (value.length > MAX_HINT_CHARACTERS || !isHint(value)) {
      throw new LibraryError(
        'E_INVALID',
        `the field "${field}" holds ${JSON.stringify(value.slice(0, 100))}, expected ${expected}`
      )
    }
  }
  return [...new Set(values)]
}

export const isHttpUrl = (text: string): boolean => /^https?:\/\/[^\s/]/i.test(text) && URL.canParse(text)

/** UDP has no default port, and sending a datagram to port 0 throws. */
export const isTrackerUrl = (text: string): boolean =>
  /^(https?|udp):\/\/[^\s/]/i.test(text) &&
  URL.canParse(text) &&
  (new URL(text).protocol !== 'udp:' || isPort(Number(new URL(text).port)))

export const isPeerAddress = (text: string): boolean => tryParseAddress(text) !== undefined

/** Removes unusable hints: one in a record must not break the artifact. */
export const usableHints = ({ trackers, webseeds, peers, ...more }: SwarmHints): SwarmHints =>
  withOthers(
    {
      trackers: trackers.filter(isTrackerUrl),
      webseeds: webseeds.filter(isHttpUrl),
      peers: peers.filter(isPeerAddress)
    },
    more.others
  )

const merged = (first: readonly string[], second: readonly string[]): readonly string[] =>
  [...new Set([...first, ...second])].slice(0, MAX_HINTS)

/** At most 100 of each kind, the first ones first. What the owner named in one of them is the owner's. */
export function mergeHints(a: SwarmHints, b: SwarmHints): SwarmHints {
  const owners = new Set([...allOf(ownHints(a)), ...allOf(ownHints(b))])
  const lists = {
    trackers: merged(a.trackers, b.trackers),
    webseeds: merged(a.webseeds, b.webseeds),
    peers: merged(a.peers, b.peers)
  }
  return withOthers(
    lists,
    [...(a.others ?? []), ...(b.others ?? [])].filter((each) => !owners.has(each))
  )
}

/** Hints that came with a record from elsewhere, such as a backup, whatever that says: the owner named none of them. */
export const strangersHints = (hints: SwarmHints): SwarmHints => withOthers(hints, allOf(hints))

/** Those that the owner named. */
export function ownHints({ trackers, webseeds, peers, others = [] }: SwarmHints): SwarmHints {
  const own = (list: readonly string[]): readonly string[] => list.filter((each) => !others.includes(each))
  return { trackers: own(trackers), webseeds: own(webseeds), peers: own(peers) }
}

/** On whose word a tracker, webseed or peer of these is dialled. */
export const policyOf = ({ others = [] }: Pick<SwarmHints, 'others'>, address: string): DialPolicy =>
  others.includes(address) ? 'internet' : 'owner'

const allOf = ({ trackers, webseeds, peers }: SwarmHints): readonly string[] => [...trackers, ...webseeds, ...peers]

function withOthers({ trackers, webseeds, peers }: SwarmHints, others: readonly string[] = []): SwarmHints {
  const lists = { trackers, webseeds, peers }
  const all = new Set(allOf(lists))
  const named = [...new Set(others)].filter((each) => all.has(each))
  return named.length === 0 ? lists : { ...lists, others: named }
}
