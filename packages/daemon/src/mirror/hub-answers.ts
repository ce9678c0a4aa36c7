import { hash } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { refuse, sendBytes } from '../http/guarded-listener.ts'

/** A repository at a commit. */
interface AtCommit {
  readonly repo: string
  readonly commit: string
  readonly importedAt: string | undefined
}

/** In hexadecimal digits. */
export const sha1 = (text: string): string => hash('sha1', text)

/** Sent with every answer about a repository. */
export const commitHeaders = ({ commit }: Pick<AtCommit, 'commit'>): OutgoingHttpHeaders => ({
  'X-Repo-Commit': commit
})

/** The list of branches as JSON. */
export const branchesOf = ({ commit }: Pick<AtCommit, 'commit'>): Buffer =>
  Buffer.from(JSON.stringify({ branches: [{ name: 'main', ref: 'refs/heads/main', targetCommit: commit }] }))

/** What the hub says of a repository; `siblings` are its files. */
export function modelInfo({ repo, commit, importedAt }: AtCommit, siblings: readonly unknown[]): unknown {
  const at = importedAt ?? new Date(0).toISOString()
  return {
    _id: sha1(repo).slice(0, 24),
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

/** Sends a document about a repository. */
export function sendJson(
  request: IncomingMessage,
  response: ServerResponse,
  found: Pick<AtCommit, 'commit'>,
  bytes: Uint8Array
): void {
  const headers = { ...commitHeaders(found), 'Content-Type': 'application/json; charset=utf-8' }
  sendBytes(request, response, bytes, headers)
}

const ABSENT = {
  RepoNotFound: 'this mirror does not have that repository',
  RevisionNotFound: 'this mirror does not have that revision of the repository',
  EntryNotFound: 'the repository has no such file here'
}

/** In the hub's form, so that its clients raise their own errors, with `what` as their message. */
export function absent(
  request: IncomingMessage,
  response: ServerResponse,
  code: keyof typeof ABSENT = 'RepoNotFound',
  what: string = ABSENT[code]
): void {
  // names of files may have any characters, headers may not
  const line = what.replace(/[^\x20-\x7e]/g, '?')
  refuse(request, response, 404, 'E_NOT_FOUND', what, { 'X-Error-Code': code, 'X-Error-Message': line })
}
