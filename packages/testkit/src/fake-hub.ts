// One file, as every route reads and changes the same repositories.

import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { contentChunks, type FakeContent } from './fake-hub-content.ts'
import type { FakeHubFault, FakeHubFaultPlan, FakeHubRequest } from './fake-hub-faults.ts'
import {
  type Commit,
  commitOf,
  type Entry,
  type FakeRepo,
  isFound,
  searchEntry,
  tagsOf,
  treeOf
} from './fake-hub-repo.ts'
import { sendBody } from './fake-hub-send.ts'
import type { FakeXet } from './fake-xet.ts'

export type { FakeRepo, FakeRepoFile } from './fake-hub-repo.ts'

export interface FakeHubOptions {
  readonly repos?: readonly FakeRepo[]
  /** Accepted tokens with access to everything. */
  readonly tokens?: readonly string[]
  /** Accepted tokens without access to gated repositories. */
  readonly outsiderTokens?: readonly string[]
  readonly faults?: FakeHubFaultPlan
  /** Entries per page of a tree. */
  readonly pageSize?: number
  /** How many requests a signed address serves. */
  readonly signedUses?: number
  /** The address of a large file, instead of the fake's own CDN. */
  readonly cdnAddress?: (path: string) => string
  /** Where it keeps the chunks of large files. Default: nowhere, though it names their hashes. */
  readonly xet?: FakeXet
  /** Told of every body that is a whole file: whether anybody would have been given it at that moment. */
  readonly onGiven?: (given: GivenFile) => void
}

/** A file that the hub sends. */
export interface GivenFile {
  readonly repoId: string
  readonly sha256: string
  readonly isPublic: boolean
}

/** Who may have a repository; what is absent stays as it is. */
export type FakeAccess = Partial<Pick<FakeRepo, 'private' | 'gated' | 'disabled'>>

export interface FakeHub {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string
  /** `http://127.0.0.2:<port>`: another host, so another origin. */
  readonly cdnOrigin: string
  /** Every request, in order of arrival. */
  readonly requests: readonly FakeHubRequest[]
  /** Adds a repository, or a new commit on the branch of one; returns the commit. */
  commit(repo: FakeRepo): string
  /** Changes who may have a repository from now on, at all its commits. */
  setAccess(repoId: string, access: FakeAccess): void
  /** Gives a repository another name; the one it has, and its earlier ones, redirect there. */
  rename(repoId: string, newId: string): void
  setFaults(plan: FakeHubFaultPlan | undefined): void
  /** All signed addresses issued so far respond with 403. */
  expireSignedUrls(): void
  /** Body bytes written to sockets, by file path. */
  readonly bytesSent: ReadonlyMap<string, number>
  close(): Promise<void>
}

/**
 * A model hub on two local origins, with the behaviour that clients rely on: pinned commits, paged trees with absolute
 * `Link` addresses, relative redirects for small files, signed addresses at another host for large ones.
 */
export async function startFakeHub(options: FakeHubOptions = {}): Promise<FakeHub> {
  const repos = new Map<string, { id: string; branches: Map<string, string>; access: FakeAccess }>()
  const commits = new Map<string, Commit>()
  const requests: FakeHubRequest[] = []
  const bytesSent = new Map<string, number>()
  const signedUses = new Map<string, number>()
  const secret = 'not a secret'
  let faults = options.faults
  let epoch = 0
  let hubOrigin = ''
  let cdnOrigin = ''

  const commit = (repo: FakeRepo): string => {
    const xetHashOf = (content: FakeContent): string => options.xet!.put(Buffer.concat([...contentChunks(content)]))
    const made = commitOf(repo, options.xet && xetHashOf)
    const { sha } = made
    commits.set(`${repo.id.toLowerCase()}@${sha}`, made)
    const known = repos.get(repo.id.toLowerCase()) ?? { id: repo.id, branches: new Map<string, string>(), access: {} }
    known.branches.set(repo.branch ?? 'main', sha)
    repos.set(repo.id.toLowerCase(), known)
    if (repo.formerId) repos.set(repo.formerId.toLowerCase(), known)
    return sha
  }

  const require = (repoId: string) => {
    const known = repos.get(repoId.toLowerCase())
    if (known === undefined) throw new Error(`the fake hub has no ${repoId}`)
    return known
  }

  /** With what was changed since it was committed. */
  const current = ({ repo, ...rest }: Commit): Commit => {
    const known = require(repo.id)
    return { ...rest, repo: { ...repo, ...known.access, id: known.id } }
  }

  const rename = (repoId: string, newId: string): void => {
    const known = require(repoId)
    for (const sha of new Set([...commits.keys()].filter((key) => key.startsWith(`${known.id.toLowerCase()}@`)))) {
      const made = commits.get(sha)!
      commits.set(`${newId.toLowerCase()}@${made.sha}`, made)
    }
    known.id = newId
    repos.set(newId.toLowerCase(), known)
  }

  const fail = (response: ServerResponse, status: number, code: string | undefined, message: string) => {
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(code === undefined ? {} : { 'x-error-code': code }),
      'x-error-message': message
    })
    response.end(JSON.stringify({ error: message }))
  }

  /** Undefined if it has already responded. */
  function access(
    request: IncomingMessage,
    response: ServerResponse,
    repoId: string,
    revision: string | undefined,
    toBytes: boolean
  ): { commit: Commit; masked: boolean } | undefined {
    const bearer = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1]
    const member = bearer !== undefined && (options.tokens ?? []).includes(bearer)
    if (bearer !== undefined && !member && !(options.outsiderTokens ?? []).includes(bearer)) {
      return void fail(response, 401, undefined, 'Invalid credentials in Authorization header')
    }
    const known = repos.get(repoId.toLowerCase())
    const absent = () => fail(response, bearer === undefined ? 401 : 404, 'RepoNotFound', 'Repository not found')
    if (!known) return void absent()
    const name = revision ?? [...known.branches.keys()][0] ?? ''
    const at = (sha: string): Commit | undefined => {
      const made = commits.get(`${known.id.toLowerCase()}@${sha}`)
      return made && current(made)
    }
    const found = at(known.branches.get(name) ?? name)
    const repo = found?.repo ?? at([...known.branches.values()][0] ?? '')?.repo
    if (repo?.private && !member) return void absent()
    if (repo?.disabled) return void fail(response, 403, undefined, 'Access to this resource is disabled.')
    if (repo?.gated && toBytes && !member) {
      return void fail(
        response,
        bearer === undefined ? 401 : 403,
        'GatedRepo',
        `Access to model ${repo.id} is restricted.`
      )
    }
    if (!found) return void fail(response, 404, 'RevisionNotFound', `Invalid rev id: ${name}`)
    return { commit: found, masked: Boolean(found.repo.gated && found.repo.maskHashes && !member) }
  }

  function hub(request: IncomingMessage, response: ServerResponse): void {
    const raw = request.url ?? '/'
    const url = new URL(raw, hubOrigin)
    const plain = url.pathname.split('/').slice(1)
    if (url.pathname === '/api/models') return search(request, response, url)
    if (url.pathname === '/api/whoami-v2') return account(request, response)
    const api = plain[0] === 'api' && plain[1] === 'models'
    const at = api ? 2 : plain[0] === 'api' ? 3 : 0
    const isLegacy = repos.has(plain[at]?.toLowerCase() ?? '')
    const repoId = plain.slice(at, at + (isLegacy ? 1 : 2)).join('/')
    // a repository without an owner has one segment less
    const segments = isLegacy ? plain.toSpliced(at, 0, '') : plain
    const verb = api ? segments[4] : segments[0] === 'api' ? 'resolve-cache' : segments[2]
    const path = decodeURIComponent(
      (verb === 'resolve' ? segments.slice(4) : verb === 'resolve-cache' ? segments.slice(6) : []).join('/')
    )
    const isXetToken = api && verb === 'xet-read-token'
    const stage = isXetToken
      ? 'xet-token'
      : verb === 'resolve' || verb === 'resolve-cache'
        ? 'resolve'
        : verb === 'tree'
          ? 'tree'
          : api
            ? 'info'
            : 'other'
    const fault = note('hub', stage, request, path)
    if (fault?.kind === 'hold') return void fault.until.then(() => hub(request, response))
    if (strikes(fault, request, response)) return
    const known = repos.get(repoId.toLowerCase())
    if (known && known.id.toLowerCase() !== repoId.toLowerCase()) {
      response.writeHead(307, { location: raw.replace(repoId, known.id) })
      return void response.end()
    }
    if (isXetToken && options.xet !== undefined) {
      if (!access(request, response, repoId, segments[5], true)) return
      const { casUrl, token: accessToken } = options.xet
      const exp = 2 ** 31
      const headers = {
        'x-xet-access-token': accessToken,
        'x-xet-token-expiration': String(exp),
        'x-xet-cas-url': casUrl
      }
      return sendJson(response, fault, { accessToken, exp, casUrl }, headers)
    }
    if (api && verb === 'refs') {
      if (!access(request, response, repoId, undefined, false)) return
      const named = [...known!.branches].filter(([name]) => !name.startsWith('refs/'))
      const refs = named.map(([name, sha]) => ({ name, ref: `refs/heads/${name}`, targetCommit: sha }))
      return sendJson(response, fault, { branches: refs, converts: [], tags: [] })
    }
    if (api && (verb === undefined || verb === 'revision')) {
      const revision = verb === undefined ? undefined : decodeURIComponent(segments.slice(5).join('/'))
      const found = access(request, response, repoId, revision, false)
      if (!found) return
      const { repo, sha, entries } = found.commit
      return sendJson(response, fault, {
        _id: sha.slice(0, 24),
        id: repo.id,
        modelId: repo.id,
        sha,
        private: repo.private ?? false,
        gated: repo.gated ?? false,
        disabled: repo.disabled ?? false,
        tags: tagsOf(found.commit),
        siblings: [...entries.keys()].slice(0, 1000).map((rfilename) => ({ rfilename }))
      })
    }
    if (api && verb === 'tree') {
      const found = access(request, response, repoId, decodeURIComponent(segments[5] ?? ''), false)
      if (!found) return
      const pageSize = options.pageSize ?? 1_000
      const at = Number(url.searchParams.get('cursor') ?? 0)
      const all = treeOf(found.commit, found.masked)
      const page = all.slice(at, at + pageSize)
      const headers: Record<string, string> = {}
      if (at + pageSize < all.length) {
        url.searchParams.set('cursor', String(at + pageSize))
        headers.link = `<${url.href}>; rel="next"`
      }
      if (fault?.kind === 'link') headers.link = `<${fault.href}>; rel="next"`
      return sendJson(response, fault, fault?.kind === 'tree' ? fault.edit(page) : page, headers)
    }
    if (api && verb === 'paths-info' && request.method === 'POST') {
      const found = access(request, response, repoId, decodeURIComponent(segments[5] ?? ''), false)
      if (!found) return
      const { commit, masked } = found
      return void text(request).then((body) => {
        const { paths = [] } = JSON.parse(body) as { paths?: readonly string[] }
        const lastCommit = { id: commit.sha, title: 'all there is', date: '2026-01-01T00:00:00.000Z' }
        const entries = treeOf(commit, masked).filter(({ path }) => paths.includes(String(path)))
        sendJson(response, fault, JSON.stringify(entries.map((entry) => ({ ...entry, lastCommit }))))
      })
    }
    if (verb === 'resolve' || verb === 'resolve-cache') {
      const revision = decodeURIComponent((verb === 'resolve' ? segments[3] : segments[5]) ?? '')
      const found = access(request, response, repoId, revision, true)
      if (!found) return
      const entry = found.commit.entries.get(path)
      if (!entry) return fail(response, 404, 'EntryNotFound', 'Entry not found')
      return give(request, response, found.commit, entry, verb === 'resolve-cache', fault)
    }
    fail(response, 404, undefined, 'Sorry, we cannot find the page you are looking for.')
  }

  /** `GET /api/whoami-v2`. */
  function account(request: IncomingMessage, response: ServerResponse): void {
    const fault = note('hub', 'account', request, '')
    if (strikes(fault, request, response)) return
    const bearer = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    const at = [...(options.tokens ?? []), ...(options.outsiderTokens ?? [])].indexOf(bearer)
    if (at < 0) return fail(response, 401, undefined, 'Invalid username or password.')
    sendJson(response, fault, { type: 'user', name: `account-${at + 1}` }, {})
  }

  /** `GET /api/models`: by words, tags and parameters, in pages with an absolute `Link` and a cursor. */
  function search(request: IncomingMessage, response: ServerResponse, url: URL): void {
    const fault = note('hub', 'search', request, '')
    if (strikes(fault, request, response)) return
    const bearer = /^Bearer (.*)$/.exec(request.headers.authorization ?? '')?.[1]
    const isMember = bearer !== undefined && (options.tokens ?? []).includes(bearer)
    if (bearer !== undefined && !isMember && !(options.outsiderTokens ?? []).includes(bearer))
      return fail(response, 401, undefined, 'Invalid credentials in Authorization header')
    const known = [...new Set(repos.values())].map(
      ({ branches, id }) => commits.get(`${id.toLowerCase()}@${[...branches.values()][0]}`)!
    )
    const all = known
      .map(current)
      .filter(({ repo }) => isMember || repo.private !== true)
      .filter((commit) => isFound(commit, url.searchParams))
      .sort((a, b) => (b.repo.downloads ?? 0) - (a.repo.downloads ?? 0))
    const limit = Number(url.searchParams.get('limit') ?? 1_000)
    const at = Number(url.searchParams.get('cursor') ?? 0)
    const page: unknown = all
      .slice(at, at + limit)
      .map((commit) => searchEntry(commit, url.searchParams.getAll('expand[]')))
    const headers: Record<string, string> = {}
    if (at + limit < all.length) {
      url.searchParams.set('cursor', String(at + limit))
      headers.link = `<${url.href}>; rel="next"`
    }
    if (fault?.kind === 'link') headers.link = `<${fault.href}>; rel="next"`
    sendJson(response, fault, fault?.kind === 'tree' ? fault.edit(page as never) : page, headers)
  }

  function give(
    request: IncomingMessage,
    response: ServerResponse,
    { sha, repo }: Commit,
    entry: Entry,
    cached: boolean,
    fault: FakeHubFault | undefined
  ): void {
    const escaped = entry.path.split('/').map(encodeURIComponent).join('/')
    if (entry.isLfs) {
      const expires = `${epoch}`
      const nonce = String(signedUses.size)
      const signature = createHmac('sha256', secret).update(`${entry.sha256}/${expires}/${nonce}`).digest('hex')
      signedUses.set(signature, 0)
      response.writeHead(302, {
        location:
          options.cdnAddress?.(entry.path) ??
          `${cdnOrigin}/${repo.id}/${entry.sha256}?path=${encodeURIComponent(entry.path)}&Expires=${expires}&n=${nonce}&Signature=${signature}`,
        'x-repo-commit': sha,
        'x-linked-etag': `"${entry.sha256}"`,
        'x-linked-size': String(entry.sizeBytes),
        'x-xet-hash': entry.xetHash,
        ...(options.xet && {
          link: `<${hubOrigin}/api/models/${repo.id}/xet-read-token/${sha}>; rel="xet-auth"`,
          'x-xet-refresh-route': `/api/models/${repo.id}/xet-read-token/${sha}`
        }),
        ...(fault?.kind === 'headers' ? fault.headers : {})
      })
      return void response.end('Found. Redirecting to the CDN')
    }
    if (!cached) {
      response.writeHead(307, {
        location: `/api/resolve-cache/models/${repo.id}/${sha}/${escaped}`,
        'x-repo-commit': sha,
        'x-linked-size': String(entry.sizeBytes),
        etag: `"${entry.gitBlobSha1}"`,
        ...(fault?.kind === 'headers' ? fault.headers : {})
      })
      return void response.end('Temporary Redirect')
    }
    sendFile(request, response, repo, entry, `"${entry.gitBlobSha1}"`, fault, { 'x-repo-commit': sha })
  }

  function cdn(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', cdnOrigin)
    const path = url.searchParams.get('path') ?? ''
    const fault = note('cdn', 'cdn', request, path)
    if (fault?.kind === 'hold') return void fault.until.then(() => cdn(request, response))
    if (strikes(fault, request, response)) return
    const plain = (status: number, text: string) => {
      response.writeHead(status, { 'content-type': 'application/xml' })
      response.end(`<Error><Message>${text}</Message></Error>`)
    }
    if (request.headers.authorization !== undefined) return plain(400, 'Only one auth mechanism allowed')
    const sha256 = url.pathname.split('/').at(-1) ?? ''
    const [expires, nonce, signature] = ['Expires', 'n', 'Signature'].map((name) => url.searchParams.get(name) ?? '')
    const expected = createHmac('sha256', secret).update(`${sha256}/${expires}/${nonce}`).digest('hex')
    const uses = signedUses.get(signature ?? '') ?? 0
    signedUses.set(signature ?? '', uses + 1)
    if (signature !== expected || Number(expires) < epoch || uses >= (options.signedUses ?? Infinity)) {
      return plain(403, 'Request has expired')
    }
    for (const commit of commits.values()) {
      const entry = commit.entries.get(path)
      const { repo } = current(commit)
      if (entry?.sha256 !== sha256 || url.pathname !== `/${repo.id}/${sha256}`) continue
      const etag = fault?.kind === 'etag' ? fault.value : `"${sha256.slice(0, 32)}"`
      return sendFile(request, response, repo, entry, etag, fault, {})
    }
    plain(404, 'NoSuchKey')
  }

  function sendFile(
    request: IncomingMessage,
    response: ServerResponse,
    repo: FakeRepo,
    entry: Entry,
    etag: string,
    fault: FakeHubFault | undefined,
    more: Record<string, string>
  ): void {
    const size = entry.sizeBytes
    const range = fault?.kind === 'ignore-range' ? null : /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '')
    const headers: Record<string, string> = {
      ...more,
      etag,
      'accept-ranges': 'bytes',
      'content-type': 'application/octet-stream',
      ...(fault?.kind === 'headers' ? fault.headers : {})
    }
    const start = range ? Number(range[1]) : 0
    if (range && start >= size) {
      response.writeHead(416, { ...headers, 'content-range': `bytes */${size}` })
      return void response.end()
    }
    let end = range?.[2] ? Math.min(size, Number(range[2]) + 1) : size
    if (range) headers['content-range'] = `bytes ${start}-${end - 1}/${size}`
    if (fault?.kind === 'content-range') {
      if (fault.value === undefined) delete headers['content-range']
      else headers['content-range'] = fault.value
    }
    if (fault?.kind === 'short-body') end = Math.max(start, end - fault.missingBytes)
    headers['content-length'] = String(end - start)
    if (end - start === size && !entry.isNeverGiven)
      options.onGiven?.({
        repoId: repo.id,
        sha256: entry.sha256,
        isPublic: !repo.private && !repo.gated && !repo.disabled
      })
    response.writeHead(range ? 206 : 200, headers)
    const chunks = entry.isNeverGiven ? [Buffer.alloc(end - start)] : contentChunks(entry.content, start, end)
    void sendBody(response, chunks, fault, (bytes) =>
      bytesSent.set(entry.path, (bytesSent.get(entry.path) ?? 0) + bytes)
    )
  }

  function sendJson(
    response: ServerResponse,
    fault: FakeHubFault | undefined,
    value: unknown,
    headers: Record<string, string> = {}
  ): void {
    const body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
    response.writeHead(200, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(body.length),
      ...headers,
      ...(fault?.kind === 'headers' ? fault.headers : {})
    })
    void sendBody(response, [body], fault, () => {})
  }

  function note(
    origin: FakeHubRequest['origin'],
    stage: FakeHubRequest['stage'],
    request: IncomingMessage,
    path: string
  ): FakeHubFault | undefined {
    const seen: FakeHubRequest = {
      origin,
      stage,
      method: request.method ?? '',
      url: request.url ?? '',
      headers: { ...request.headers } as Record<string, string | undefined>,
      ...(path === '' ? {} : { path })
    }
    requests.push(seen)
    return faults?.(seen)
  }

  /** True if the fault was the whole response. */
  function strikes(fault: FakeHubFault | undefined, request: IncomingMessage, response: ServerResponse): boolean {
    if (fault?.kind === 'refuse') {
      request.socket.destroy()
      return true
    }
    if (fault?.kind === 'status') {
      const body = fault.body ?? 'as asked for'
      response.writeHead(fault.status, { 'content-length': String(Buffer.byteLength(body)), ...fault.headers })
      response.end(body)
      return true
    }
    if (fault?.kind === 'redirect') {
      const location = fault.location === 'self' ? (request.url ?? '/') : fault.location
      response.writeHead(fault.status ?? 302, { location })
      response.end()
      return true
    }
    return false
  }

  const sockets = new Set<Socket>()
  const listen = (server: Server, host: string) =>
    new Promise<string>((resolve, reject) => {
      server.on('connection', (socket) => {
        sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => sockets.delete(socket))
      })
      server.once('error', reject)
      server.listen(0, host, () => resolve(`http://${host}:${(server.address() as AddressInfo).port}`))
    })
  const servers = [createServer(hub), createServer(cdn)] as const
  hubOrigin = await listen(servers[0], '127.0.0.1')
  cdnOrigin = await listen(servers[1], '127.0.0.2')
  for (const repo of options.repos ?? []) commit(repo)

  return {
    endpoint: hubOrigin,
    cdnOrigin,
    requests,
    commit,
    rename,
    setAccess: (repoId, access) => {
      const known = require(repoId)
      known.access = { ...known.access, ...access }
    },
    bytesSent,
    setFaults: (plan) => {
      faults = plan
    },
    expireSignedUrls: () => {
      epoch++
    },
    close: async () => {
      const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)))
      for (const socket of sockets) socket.destroy()
      await Promise.all(closed)
    }
  }
}
