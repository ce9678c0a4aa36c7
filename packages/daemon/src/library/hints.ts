import { isPort, tryParseAddress } from '@svc/internal-net'
import { DaemonError } from '../errors.ts'
import type { SwarmHints } from './origin.ts'

const MAX_HINTS = 100
const MAX_HINT_CHARACTERS = 2_048

/** Validates a list of hints in a request body. @throws DaemonError `E_BAD_REQUEST` naming the field. */
export function checkedHints(
  values: readonly string[],
  field: string,
  expected: string,
  isHint: (value: string) => boolean
): readonly string[] {
  if (values.length > MAX_HINTS)
    throw new DaemonError('E_BAD_REQUEST', `the field "${field}" has more than ${MAX_HINTS} entries`)
  for (const value of values) {
    if (value.length > MAX_HINT_CHARACTERS || !isHint(value)) {
      throw new DaemonError(
        'E_BAD_REQUEST',
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
export const usableHints = ({ trackers, webseeds, peers }: SwarmHints): SwarmHints => ({
  trackers: trackers.filter(isTrackerUrl),
  webseeds: webseeds.filter(isHttpUrl),
  peers: peers.filter(isPeerAddress)
})

const merged = (first: readonly string[], second: readonly string[]): readonly string[] =>
  [...new Set([...first, ...second])].slice(0, MAX_HINTS)

/** At most 100 of each kind, the first ones first. */
export const mergeHints = (a: SwarmHints, b: SwarmHints): SwarmHints => ({
  trackers: merged(a.trackers, b.trackers),
  webseeds: merged(a.webseeds, b.webseeds),
  peers: merged(a.peers, b.peers)
})
