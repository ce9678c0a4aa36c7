import { CasError, type CasErrorCode } from '@svc/cas'
import { ClassifyError, type ClassifyErrorCode } from '@svc/classify'
import { type ErrorCode, type ErrorEnvelope, errorStatus } from '@svc/client/protocol'
import { HubError } from '@svc/hub'
import { errnoName, isNoSpace } from '@svc/internal-files'
import { unloadedCode } from '@svc/internal-http'
import { envelope } from '@svc/internal-server'
import { LibraryError, type LibraryErrorCode, UnreadableStateError } from '@svc/library/parts'
import { ManifestError, type ManifestErrorCode } from '@svc/manifest'
import { MetainfoError, type MetainfoErrorCode } from '@svc/metainfo'
import { RefError } from '@svc/ref'
import type { SwarmError, SwarmErrorCode } from '@svc/swarm'
import { ViewError, type ViewErrorCode } from '@svc/view/view-error'
import { advised } from '../advice.ts'
import { DaemonError } from '../errors.ts'

/** An error in the form of a response or of a failed job. */
export interface WireError {
  readonly status: number
  readonly envelope: ErrorEnvelope
  /** The client gets fewer details than are known, so the error itself must be logged. */
  readonly hidden: boolean
}

/**
 * How a library's error is reported: a code, with the library's message, or with `message` when the original could
 * contain a path or would not help the caller. `E_INTERNAL` is logged completely.
 */
type Rule<E> =
  | ErrorCode
  | typeof DEFECT
  | { readonly code: ErrorCode; readonly message: (error: E) => string; readonly status?: number }

const UNFORESEEN = 'the daemon failed unexpectedly; its log has the details'
const DEFECT = 'a defect, or an error of the disk behind one'

/*
 * One table per error class that can reach a response or a job. Each is complete: when a library gains a code, this
 * does not compile until it has a row. `DEFECT` marks codes that code inside the daemon has to handle or prevent.
 */

const CAS = {
  E_NOT_FOUND: 'E_NOT_FOUND',
  E_DIGEST_MISMATCH: 'E_NOT_IMPORTABLE',
  E_SIZE_MISMATCH: 'E_NOT_IMPORTABLE',
  E_INCOMPLETE: DEFECT,
  E_NO_SPACE: 'E_NO_SPACE',
  E_IO: { code: 'E_INTERNAL', message: (error) => ioMessage(error.cause, error.details.operation) },
  E_ABORTED: { code: 'E_ABORTED', message: () => 'the operation was aborted' },
  E_LOCKED: DEFECT,
  E_RANGE: DEFECT,
  E_CLOSED: { code: 'E_SHUTTING_DOWN', message: () => 'the store is closed: the daemon is stopping' },
  E_FORMAT: DEFECT,
  E_UNSAFE_ROOT: DEFECT,
  E_OTHER_STORE: DEFECT,
  E_STORE_GONE: 'E_INTERNAL',
  E_CORRUPT: { code: 'E_CORRUPTION', message: ({ details }) => `${details.digest ?? 'a blob'} is not a regular file` },
  E_ATTACHMENT: DEFECT,
  E_THREAD: DEFECT
} as const satisfies Record<CasErrorCode, Rule<CasError>>

const CLASSIFY = {
  E_BAD_NAME: 'E_BAD_REQUEST',
  E_NOT_IMPORTABLE: 'E_NOT_IMPORTABLE',
  E_TAR_LIMIT: 'E_NOT_IMPORTABLE',
  E_TAR_CONTENT: DEFECT,
  E_MISSING_FACT: DEFECT,
  E_BAD_JSON: 'E_NOT_IMPORTABLE',
  E_NO_MEMBER: 'E_NO_MEMBER',
  E_BAD_GLOB: 'E_BAD_REQUEST'
} as const satisfies Record<ClassifyErrorCode, Rule<ClassifyError>>

const MANIFEST = {
  E_INVALID: 'E_NOT_IMPORTABLE',
  E_CORRUPTION: 'E_CORRUPTION'
} as const satisfies Record<ManifestErrorCode, Rule<ManifestError>>

const METAINFO = {
  E_BENCODE: 'E_NOT_IMPORTABLE',
  E_METAINFO: 'E_NOT_IMPORTABLE',
  E_MAGNET: 'E_BAD_REQUEST',
  E_MERKLE: 'E_NOT_IMPORTABLE'
} as const satisfies Record<MetainfoErrorCode, Rule<MetainfoError>>

const SWARM = {
  E_PROTOCOL: 'E_SOURCE_UNAVAILABLE',
  E_WEBSEED: 'E_SOURCE_UNAVAILABLE',
  E_STORAGE: { code: 'E_INTERNAL', message: (error) => ioMessage(error.cause, 'store what the swarm sent') },
  E_ADDRESS: 'E_BAD_REQUEST',
  E_OPTION: DEFECT,
  E_CLOSED: { code: 'E_ABORTED', message: () => 'the swarm client left the torrent before it was complete' }
} as const satisfies Record<SwarmErrorCode, Rule<SwarmError>>

const VIEW = {
  E_BAD_NAME: 'E_BAD_REQUEST',
  E_MISSING_BLOB: 'E_NOT_FOUND',
  E_CORRUPT_BLOB: 'E_CORRUPTION',
  E_BAD_TAR: 'E_CORRUPTION',
  E_BAD_TARGET: 'E_BAD_REQUEST',
  E_NOT_A_VIEW: 'E_BAD_REQUEST',
  E_TAKEN: 'E_BAD_REQUEST',
  E_NOT_LINKABLE: 'E_BAD_REQUEST',
  E_NO_MATCH: DEFECT,
  E_AMBIGUOUS: DEFECT,
  E_INCOMPLETE: DEFECT,
  // these two have no status of their own: otherwise they occur only in jobs
  E_NO_SPACE: { code: 'E_NO_SPACE', status: 507, message: ({ message }) => message },
  E_IO: { code: 'E_INTERNAL', message: (error) => ioMessage(error.cause, 'make or remove a view') },
  E_ABORTED: { code: 'E_ABORTED', status: 409, message: () => 'a request to remove the view cancelled it' }
} as const satisfies Record<ViewErrorCode, Rule<ViewError>>

const LIBRARY = {
  E_PARSE: 'E_PARSE',
  E_LENGTH: 'E_LENGTH',
  E_UNKNOWN_REF: 'E_UNKNOWN_REF',
  E_AMBIGUOUS_SELECTOR: 'E_AMBIGUOUS_SELECTOR',
  E_NO_MEMBER: 'E_NO_MEMBER',
  E_PIN_MISMATCH: 'E_PIN_MISMATCH',
  E_INVALID: 'E_BAD_REQUEST',
  E_NOT_FOUND: 'E_NOT_FOUND',
  E_NO_INDEX: 'E_NO_INDEX',
  E_INVALID_INDEX: 'E_INVALID_INDEX',
  E_CORRUPTION: 'E_CORRUPTION',
  E_NO_QUANT: { code: 'E_NO_MEMBER', status: 404 },
  E_NOT_IMPORTABLE: 'E_NOT_IMPORTABLE',
  E_BAD_LISTING: { code: 'E_NOT_IMPORTABLE', status: 502 },
  E_NOT_AT_SOURCE: { code: 'E_UNKNOWN_REF', status: 502 },
  E_NOT_LISTED: { code: 'E_UNKNOWN_REF', status: 400 },
  E_NOT_ANCHORED: 'E_NOT_ANCHORED',
  E_SOURCE_NOT_REGULAR: 'E_SOURCE_NOT_REGULAR',
  E_SOURCE_UNAVAILABLE: 'E_SOURCE_UNAVAILABLE',
  E_SOURCE_FORBIDDEN: 'E_SOURCE_FORBIDDEN',
  E_RATE_LIMITED: 'E_RATE_LIMITED',
  E_KEPT: 'E_KEPT',
  E_NO_SPACE: 'E_NO_SPACE',
  E_ABORTED: 'E_ABORTED',
  E_LIMIT: { code: 'E_RATE_LIMITED', status: 503 },
  E_CLOSED: 'E_SHUTTING_DOWN',
  E_IO: 'E_INTERNAL',
  E_LOCKED: DEFECT,
  E_OTHER_STORE: DEFECT,
  E_NO_STORE: DEFECT,
  E_UNFINISHED_COPY: DEFECT,
  E_ROOT: DEFECT,
  E_TRUST: DEFECT
} as const satisfies Record<
  LibraryErrorCode,
  ErrorCode | typeof DEFECT | { readonly code: ErrorCode; readonly status: number }
>

/**
 * Maps any thrown value to a code of the table. An unexpected error is `E_INTERNAL` with a constant message: its text
 * may contain a path, a header or a secret, so it is only logged (spec http.12).
 */
export function toWireError(error: unknown): WireError {
  if (error instanceof DaemonError) {
    const { code, message, status, candidates } = error
    return wire(code, message, { status, candidates, hidden: code === 'E_INTERNAL' })
  }
  if (error instanceof LibraryError) return ofLibrary(error)
  if (error instanceof RefError) {
    return wire(error.code, error.message, { candidates: error.candidates.length > 0 ? error.candidates : undefined })
  }
  if (error instanceof UnreadableStateError) {
    return wire('E_INTERNAL', `the state is unreadable: ${error.message}`, { hidden: true })
  }
  if (error instanceof CasError) return byRule(CAS[error.code], error)
  if (error instanceof ClassifyError) return byRule(CLASSIFY[error.code], error)
  if (error instanceof ManifestError) return byRule(MANIFEST[error.code], error)
  if (error instanceof MetainfoError) return byRule(METAINFO[error.code], error)
  // the hub client uses the API's codes (spec hub.6)
  if (error instanceof HubError) return wire(error.code, error.message, { hidden: error.code === 'E_INTERNAL' })
  if (isNamed<SwarmError>(error, 'SwarmError')) return byRule(SWARM[error.code], error)
  if (error instanceof ViewError) return byRule(VIEW[error.code], error)
  return unforeseen(error)
}

/** For the errors of packages that are loaded only where the configuration turns them on. */
const isNamed = <E extends Error>(error: unknown, name: E['name']): error is E =>
  error instanceof Error && error.name === name

const wire = (
  code: ErrorCode,
  message: string,
  more: { status?: number | undefined; candidates?: readonly string[] | undefined; hidden?: boolean } = {}
): WireError => ({
  status: more.status ?? errorStatus(code),
  envelope: envelope(code, message, more.candidates),
  hidden: more.hidden ?? false
})

/** The library's message, with the commands and calls that help. */
function ofLibrary(error: LibraryError): WireError {
  const rule: (typeof LIBRARY)[LibraryErrorCode] | undefined = LIBRARY[error.code]
  if (rule === undefined || rule === DEFECT) return unforeseen(error)
  const { candidates } = error
  if (typeof rule !== 'string') return wire(rule.code, advised(error), { status: rule.status, candidates })
  return wire(rule, advised(error), { candidates, hidden: rule === 'E_INTERNAL' })
}

/** `rule` is undefined when a worker thread sent a code that its library does not have. */
function byRule<E extends Error>(rule: Rule<E> | undefined, error: E): WireError {
  if (rule === undefined || rule === DEFECT) return unforeseen(error)
  // a full disk is reported as such, whichever operation found it
  if (typeof rule !== 'string' && rule.code === 'E_INTERNAL' && isNoSpace(systemError(error))) return unforeseen(error)
  if (typeof rule === 'string') return wire(rule, error.message, { candidates: candidatesOf(error) })
  return wire(rule.code, rule.message(error), { hidden: true, status: rule.status })
}

/** The alternatives that a library's error lists. */
function candidatesOf(
  error: { readonly details?: { readonly candidates?: unknown; readonly missing?: unknown } } & Error
): readonly string[] | undefined {
  const candidates = error.details?.candidates ?? error.details?.missing
  return Array.isArray(candidates) ? candidates.map(String) : undefined
}

const ERRNO = /^(?:E[A-Z0-9]{2,20}|Unknown system error -\d{1,5})$/
const SYSCALL = /^[a-z0-9_]{1,20}$/
/** Errors are wrapped where they cross a thread, a library and a job: more than that is a loop. */
const MAX_CAUSES = 8

/** The system error that an error is, or that caused it: a thread that could not read its own code ends with one. */
function systemError(error: unknown): NodeJS.ErrnoException | undefined {
  let at = error as NodeJS.ErrnoException | undefined
  for (let n = 0; n < MAX_CAUSES && typeof at === 'object' && at !== null; n++) {
    const { code, syscall } = at
    if (typeof code === 'string' && ERRNO.test(code) && typeof syscall === 'string' && SYSCALL.test(syscall)) return at
    if (isNoSpace(at)) return at
    const unloaded = unloadedCode(at)
    if (unloaded !== undefined) return unloaded
    at = at.cause as NodeJS.ErrnoException | undefined
  }
  return undefined
}

/** For a system error the client gets the errno, which shows what is wrong with the disk, but never the path. */
function unforeseen(error: unknown): WireError {
  const system = systemError(error)
  if (system === undefined) return wire('E_INTERNAL', UNFORESEEN, { hidden: true })
  if (isNoSpace(system))
    return wire('E_NO_SPACE', `no space left on the store's file system (${errnoName(system)})`, { hidden: true })
  return wire('E_INTERNAL', ioMessage(system, system.syscall), { hidden: true })
}

/** The usual errnos: their meaning, and what the user can do. */
const WORDS: Readonly<Record<string, string>> = {
  EROFS: 'the file system is mounted read-only',
  EACCES: 'the user of the daemon has no permission',
  EPERM: 'the system does not allow it',
  EMFILE: 'the daemon has too many files open; raise its limit (LimitNOFILE, ulimit -n)',
  ENFILE: 'the system has too many files open',
  ENAMETOOLONG: 'a name is longer than the file system allows'
}

function ioMessage(cause: unknown, operation = 'work'): string {
  const { code } = (systemError(cause) ?? cause ?? {}) as { code?: unknown }
  const name = typeof code === 'string' && ERRNO.test(code) ? code : 'unknown error'
  const meaning = WORDS[name] === undefined ? '' : `: ${WORDS[name]}`
  return `an input/output error (${name}) while the daemon tried to: ${operation}${meaning}; its log has the details`
}
