/** One row of the error table (spec err.2). */
export interface ErrorCodeEntry {
  /** Status of the response unless a route overrides it; `job` for codes that only occur in failed jobs. */
  readonly status: number | 'job'
  /** When the code is used, as text for people. */
  readonly description: string
}

/**
 * Every code of the daemon, in a response or in a failed job. This is the only table of them: tests compare
 * docs/errors.md and docs/openapi.json with it, and code that uses another one does not compile.
 */
export const ERROR_CODES = {
  E_UNSUPPORTED_VERSION: {
    status: 400,
    description: 'The path is under another major version. `candidates` is `["v1"]`.'
  },
  E_NOT_FOUND: { status: 404, description: 'Unknown path, unknown job id, or unknown blob.' },
  E_METHOD_NOT_ALLOWED: {
    status: 405,
    description: 'The path exists, the method does not; `Allow` lists the allowed methods.'
  },
  E_BAD_REQUEST: {
    status: 400,
    description:
      'A missing or malformed body field, query parameter or digest, `magnet` and `infohash` together, or a request that is not HTTP.'
  },
  E_TIMEOUT: { status: 408, description: 'The request did not arrive in time.' },
  E_PRECONDITION_FAILED: { status: 412, description: '`If-Match` names another blob.' },
  E_TOO_LARGE: { status: 413, description: 'The request body exceeds 1 MiB, or 32 MiB on `/v1/adopt`.' },
  E_HEADERS_TOO_LARGE: { status: 431, description: 'The request headers are too large.' },
  E_PARSE: { status: 400, description: 'The reference is malformed or not canonical; the message names the fix.' },
  E_LENGTH: { status: 400, description: 'The reference is longer than 512 bytes.' },
  E_UNKNOWN_REF: {
    status: 404,
    description:
      'No local index of that name, no such tag, a digest whose blob is not a manifest, or a repository that the hub or the catalog does not have.'
  },
  E_AMBIGUOUS_SELECTOR: { status: 400, description: 'The prefix matches several quants; `candidates` lists them.' },
  E_NO_MEMBER: { status: 400, description: 'No quant matches the selector; `candidates` lists all.' },
  E_PIN_MISMATCH: { status: 400, description: 'The digest in the reference is not that of the selected quant.' },
  E_NO_INDEX: { status: 404, description: 'The state names an index blob that is absent from the store.' },
  E_INVALID_INDEX: {
    status: 500,
    description: 'The model index fails validation. It is never rebuilt silently.'
  },
  E_CORRUPTION: { status: 500, description: 'A manifest in the store is corrupt.' },
  E_RANGE_INVALID: { status: 416, description: 'The `Range` does not overlap the blob, or is malformed.' },
  E_SOURCE_NOT_REGULAR: {
    status: 400,
    description:
      'A path to import is, or contains, a symlink, FIFO, device or socket; or a file changed during the import.'
  },
  E_SOURCE_FORBIDDEN: {
    status: 502,
    description: 'The hub refuses access: gated, private, or nonexistent when anonymous.'
  },
  E_SOURCE_UNAVAILABLE: {
    status: 502,
    description:
      'No source has the bytes: unreachable, swarm disabled, manifest not local, or bytes that do not match the pin.'
  },
  E_RATE_LIMITED: {
    status: 502,
    description: 'The hub still limits the rate after the requested wait. With 503: the daemon has too many open jobs.'
  },
  E_NOT_IMPORTABLE: {
    status: 'job',
    description:
      'No recognized weights, a refused listing, or fetched bytes that fail verification or do not match the pin.'
  },
  E_NOT_IMPLEMENTED: { status: 501, description: 'BT import while the swarm client is disabled.' },
  E_NOT_ANCHORED: { status: 422, description: 'A rescued catalog model without `trustCatalog`.' },
  E_VERIFY_FAILED: {
    status: 'job',
    description: 'The re-hash found mismatches, missing blobs or state errors; the job lists them under `verify`.'
  },
  E_KEPT: {
    status: 'job',
    description:
      'An eviction is refused: no other source is proven to have the bytes, or they are pinned, in a view or in use.'
  },
  E_NO_SPACE: { status: 'job', description: 'The disk has too little space. No partial write is kept as a blob.' },
  E_ABORTED: {
    status: 'job',
    description: 'The daemon stopped, or the job was cancelled. Verified bytes are kept.'
  },
  E_SHUTTING_DOWN: { status: 503, description: 'The daemon is stopping and accepts no new work.' },
  E_INTERNAL: {
    status: 500,
    description: 'Unreadable state or configuration, an I/O error, or a defect of the daemon.'
  }
} as const satisfies Readonly<Record<string, ErrorCodeEntry>>

/** A code of {@link ERROR_CODES}. */
export type ErrorCode = keyof typeof ERROR_CODES

/** Status of a response with this code, unless a route overrides it; 500 for codes that only occur in jobs. */
export function errorStatus(code: ErrorCode): number {
  const { status } = ERROR_CODES[code]
  return status === 'job' ? 500 : status
}
