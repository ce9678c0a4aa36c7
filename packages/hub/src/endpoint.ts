import { HubError } from './errors.ts'

/** The public hub. */
export const PUBLIC_ENDPOINT = 'https://huggingface.co'

/** The base of a hub: its origin and, for mirrors below a path, that path without the trailing slash. */
export interface Endpoint {
  readonly origin: string
  readonly base: string
}

const REPO_SEGMENT = /^[A-Za-z0-9._-]{1,128}$/

/**
 * @throws HubError `E_INTERNAL`, reason `bad-request`: not an http(s) URL, or one with credentials, query or fragment.
 */
export function parseEndpoint(text: string): Endpoint {
  const url = URL.parse(text)
  if (
    url === null ||
    !['https:', 'http:'].includes(url.protocol) ||
    url.username + url.password + url.search + url.hash !== ''
  ) {
    throw new HubError(
      'E_INTERNAL',
      'bad-request',
      'the hub endpoint is not a plain http or https URL; expected e.g. https://hub.example'
    )
  }
  return { origin: url.origin, base: url.origin + url.pathname.replace(/\/+$/, '') }
}

/**
 * True for a repository's id as hubs spell it: `org/name`, or just a name for the oldest ones (`gpt2`), of letters,
 * digits, `.`, `_`, `-`.
 */
export function isRepoId(text: unknown): text is string {
  if (typeof text !== 'string') return false
  const segments = text.split('/')
  return segments.length <= 2 && segments.every((s) => REPO_SEGMENT.test(s) && s !== '.' && s !== '..')
}

/** True for a branch, tag, ref or commit that survives as one URL segment. */
export const isRevision = (text: unknown): text is string =>
  typeof text === 'string' &&
  text.length >= 1 &&
  text.length <= 255 &&
  text !== '.' &&
  text !== '..' &&
  text.isWellFormed() &&
  !/[\0-\x20\x7f]/.test(text)

/** Escapes each segment separately (spec hub.3). The path must have passed the listing's checks. */
const encodePath = (path: string): string => path.split('/').map(encodeURIComponent).join('/')

export const infoUrl = (at: Endpoint, repoId: string, revision: string | undefined): string =>
  `${at.base}/api/models/${repoId}${revision === undefined ? '' : `/revision/${encodeURIComponent(revision)}`}`

export const refsUrl = (at: Endpoint, repoId: string): string => `${at.base}/api/models/${repoId}/refs`

export const treeUrl = (at: Endpoint, repoId: string, commit: string): string =>
  `${at.base}/api/models/${repoId}/tree/${commit}?recursive=true&expand=false`

export const readTokenUrl = (at: Endpoint, repoId: string, commit: string): string =>
  `${at.base}/api/models/${repoId}/xet-read-token/${commit}`

export const resolveUrl = (at: Endpoint, repoId: string, commit: string, path: string): string =>
  `${at.base}/${repoId}/resolve/${commit}/${encodePath(path)}`

/** For messages: without the query, which may contain a signature. */
export const printableUrl = (url: URL): string => url.origin + url.pathname
