/** Exit codes of `svc`, documented in `svc --help` and docs/cli.md. */
export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  unreachable: 4,
  verification: 5,
  source: 6,
  interrupted: 130
} as const

export type Exit = keyof typeof EXIT

/** A line for each, for the help and the docs. */
export const EXIT_HELP: readonly (readonly [number, string])[] = [
  [EXIT.ok, 'done'],
  [EXIT.failed, 'the operation failed'],
  [EXIT.usage, 'wrong usage: arguments, a malformed reference, a request that the daemon refuses'],
  [EXIT.notFound, 'no such model, quant, file, blob or job'],
  [EXIT.unreachable, 'the daemon does not answer'],
  [EXIT.verification, 'verification failed: corrupt or missing bytes, or bytes that differ from the pin'],
  [EXIT.source, 'the hub, the catalog or the swarm is unreachable or refuses'],
  [EXIT.interrupted, 'interrupted by Ctrl-C; a running job continues']
]

/** The codes of the daemon, its client, and the libraries that `svc` calls; all others are a failure. */
const CODES: readonly (readonly [Exit, string])[] = [
  ['usage', 'E_BAD_REQUEST E_BAD_REFERENCE E_BAD_TARGET E_PARSE E_LENGTH E_AMBIGUOUS_SELECTOR E_RANGE_INVALID'],
  ['usage', 'E_SOURCE_NOT_REGULAR E_TOO_LARGE E_NOT_ANCHORED'],
  ['notFound', 'E_NOT_FOUND E_UNKNOWN_REF E_NO_INDEX E_NO_MEMBER'],
  ['unreachable', 'E_UNREACHABLE E_UNSAFE_SOCKET E_NO_ANSWER E_SHUTTING_DOWN'],
  ['verification', 'E_VERIFY_FAILED E_CORRUPTION E_INVALID_INDEX E_PIN_MISMATCH E_DIGEST_MISMATCH E_CHECK_FAILED'],
  ['source', 'E_SOURCE_UNAVAILABLE E_SOURCE_FORBIDDEN E_RATE_LIMITED E_UNAVAILABLE E_DENIED E_CREDENTIALS']
]

export const exitOf = (code: string): Exit => CODES.find(([, all]) => all.split(' ').includes(code))?.[0] ?? 'failed'
