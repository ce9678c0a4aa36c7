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

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** A line for each, for the help and the docs. */
export const EXIT_HELP: readonly (readonly [ExitCode, string])[] = [
  [EXIT.ok, 'done'],
  [EXIT.failed, 'the operation failed'],
  [EXIT.usage, 'wrong usage: arguments, a malformed reference, a request that the daemon refuses'],
  [EXIT.notFound, 'no such model, quant, file, blob or job'],
  [EXIT.unreachable, 'the daemon does not answer'],
  [EXIT.verification, 'verification failed: corrupt or missing bytes, or bytes that differ from the pin'],
  [EXIT.source, 'the hub, the catalog or the swarm is unreachable or refuses'],
  [EXIT.interrupted, 'interrupted by Ctrl-C; a running job continues']
]

/** By the codes of the daemon, its client, and the libraries that `svc` calls; all others are a failure. */
const BY_CODE: Readonly<Record<string, ExitCode>> = {
  E_BAD_REQUEST: EXIT.usage,
  E_PARSE: EXIT.usage,
  E_LENGTH: EXIT.usage,
  E_AMBIGUOUS_SELECTOR: EXIT.usage,
  E_SOURCE_NOT_REGULAR: EXIT.usage,
  E_RANGE_INVALID: EXIT.usage,
  E_TOO_LARGE: EXIT.usage,
  E_NOT_ANCHORED: EXIT.usage,
  E_BAD_REFERENCE: EXIT.usage,
  E_BAD_TARGET: EXIT.usage,
  E_NOT_FOUND: EXIT.notFound,
  E_UNKNOWN_REF: EXIT.notFound,
  E_NO_INDEX: EXIT.notFound,
  E_NO_MEMBER: EXIT.notFound,
  E_UNREACHABLE: EXIT.unreachable,
  E_UNSAFE_SOCKET: EXIT.unreachable,
  E_NO_ANSWER: EXIT.unreachable,
  E_SHUTTING_DOWN: EXIT.unreachable,
  E_VERIFY_FAILED: EXIT.verification,
  E_CORRUPTION: EXIT.verification,
  E_INVALID_INDEX: EXIT.verification,
  E_PIN_MISMATCH: EXIT.verification,
  E_DIGEST_MISMATCH: EXIT.verification,
  E_CHECK_FAILED: EXIT.verification,
  E_SOURCE_UNAVAILABLE: EXIT.source,
  E_SOURCE_FORBIDDEN: EXIT.source,
  E_RATE_LIMITED: EXIT.source,
  E_UNAVAILABLE: EXIT.source,
  E_DENIED: EXIT.source,
  E_CREDENTIALS: EXIT.source
}

export const exitCodeOf = (code: string): ExitCode => BY_CODE[code] ?? EXIT.failed
