import { hash } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { refuse, sendBytes } from '@svc/internal-server'
import type { OmissionReason } from '@svc/manifest'
import type { HubRevision } from './hub-revisions.ts'

/** In hexadecimal digits. */
export const sha1Hex = (text: string): string => hash('sha1', text)

/** Sent with every answer about a repository. */
export const commitHeaders = ({ commit }: HubRevision): OutgoingHttpHeaders => ({ 'X-Repo-Commit': commit })

/** The refs, as JSON: the default branch, and what else models here follow, which may be branches or tags. */
export function refsBody(
  { commit }: HubRevision,
  followed: ReadonlyMap<string, string>,
  query: URLSearchParams
): Buffer {
  const named = new Map([...followed, ['main', commit]])
  const branches = [...named].map(([name, targetCommit]) => ({ name, ref: `refs/heads/${name}`, targetCommit }))
  const withPulls = query.get('include_prs') === '1' ? { pullRequests: [] } : {}
  return Buffer.from(JSON.stringify({ branches, tags: [], converts: [], ...withPulls }))
}

/** What the hub says of a repository; `siblings` are its files. */
export function modelInfo({ repo, commit, modifiedAt }: HubRevision, siblings: readonly unknown[]): unknown {
  const at = modifiedAt ?? new Date(0).toISOString()
  return {
    _id: sha1Hex(repo).slice(0, 24),
    id: repo,
    modelId: repo,
    ...(repo.includes('/') && { author: repo.split('/')[0] }),
    sha: commit,
    lastModified: at,
    createdAt: at,
    private: false,
    gated: false,
    disabled: false,
    downloads: 0,
    likes: 0,
    tags: [],
    siblings
  }
}

export function sendHubJson(
  request: IncomingMessage,
  response: ServerResponse,
  found: HubRevision,
  bytes: Uint8Array
): void {
  const { leftOut } = found
  const left = leftOut === undefined ? 'unknown' : leftOut.reasons.size + leftOut.more
  const headers = {
    ...commitHeaders(found),
    'Content-Type': 'application/json; charset=utf-8',
    ...(left !== 0 && { 'X-Svc-Left-Out': left })
  }
  sendBytes(request, response, bytes, headers)
}

const ABSENT = {
  RepoNotFound: 'this mirror does not have that repository',
  RevisionNotFound: 'this mirror does not have that revision of the repository',
  EntryNotFound: 'the repository has no such file here'
}

/** Limit of a name in a header, where it is written as in a URL. */
const MAX_SHOWN = 500

/** Why a snapshot does not have a file. */
export function absentFile(path: string, { leftOut }: HubRevision): string {
  const reason = leftOut?.reasons.get(path)
  const name = encodeURI(path).slice(0, MAX_SHOWN)
  if (reason === undefined) return `${ABSENT.EntryNotFound}: ${name}`
  return `the repository has ${name}, but this mirror does not: ${WHY[reason] ?? 'it was not kept'}`
}

const WHY: Readonly<Partial<Record<OmissionReason, string>>> = {
  artifact: 'it was not chosen',
  large: 'it is not part of a model, and too large to be kept beside one',
  many: 'it is one of too many small files',
  name: 'no folder may have that name'
}

/** In the hub's form, so that its clients raise their own errors, with `what` as their message. */
export function absent(
  response: ServerResponse,
  code: keyof typeof ABSENT = 'RepoNotFound',
  what: string = ABSENT[code]
): void {
  // names of files may have any characters, headers may not
  const line = what.replace(/[^\x20-\x7e]/g, '?')
  refuse(response, 404, 'E_NOT_FOUND', what, { 'X-Error-Code': code, 'X-Error-Message': line })
}
