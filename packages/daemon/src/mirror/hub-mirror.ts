import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { digestHex } from '@svc/ref'
import { isInLargeFileStorage } from '@svc/view'
import { BufferPool } from '../http/buffer-pool.ts'
import { GuardedListener, type ListenerOptions, refuse, sendBytes } from '../http/guarded-listener.ts'
import type { ArtifactState } from '../library/artifacts.ts'
import type { Log } from '../log.ts'
import { readForm } from './form.ts'
import { Published, type PublishedDeps, type PublishedFile } from './published.ts'
import { sendFile } from './send-file.ts'

const CHUNK_BYTES = 256 << 10
/** A pointer file of large-file storage; clients only show it. */
const POINTER_BYTES = 134

/** How clients ask for the default branch. */
const DEFAULT_BRANCH = new Set(['main', 'HEAD'])

/** A repository of the hub at one commit, as far as it was imported. */
interface Snapshot {
  readonly repo: string
  readonly commit: string
  /** By upstream name, sorted. */
  readonly files: ReadonlyMap<string, PublishedFile>
  readonly importedAt: string | undefined
}

/** Where and for whom a mirror listens. */
export interface MirrorOptions {
  readonly address: { readonly host: string; readonly port: number }
  readonly token?: string | undefined
  readonly log: Log
}

/**
 * Answers as a model hub does, for repositories that were imported from the hub, at their imported commits (spec add.20). Read-only;
 * whatever is private or restricted does not exist here.
 */
export class HubMirror {
  readonly #deps: PublishedDeps
  readonly #published: Published
  readonly #pool = new BufferPool(CHUNK_BYTES)
  readonly #gitNames = new Map<string, string>()
  #listener!: GuardedListener

  private constructor(deps: PublishedDeps) {
    this.#deps = deps
    this.#published = new Published(deps)
  }

  /** @throws the error of `listen` */
  static async listen(deps: PublishedDeps, { address, token, log }: MirrorOptions): Promise<HubMirror> {
    const mirror = new HubMirror(deps)
    const answer: ListenerOptions['answer'] = (request, response, url) => mirror.#route(request, response, url)
    const methods = ['GET', 'HEAD', 'POST']
    mirror.#listener = await GuardedListener.listen({ name: 'hub mirror', address, token, log, methods, answer })
    return mirror
  }

  get address(): { readonly host: string; readonly port: number } {
    return this.#listener.address
  }

  close(): Promise<void> {
    return this.#listener.close()
  }

  async #route(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    const path = decoded(url.split('?', 1)[0]!)
    const query = new URLSearchParams(url.slice(url.indexOf('?') + 1 || url.length))
    const [, repo, verb, rest = ''] =
      /^\/api\/models\/([^/]+\/[^/]+)(?:\/(revision|tree|paths-info)\/(.+))?$/.exec(path ?? '') ?? []
    if (request.method === 'POST') {
      const found = verb === 'paths-info' ? await this.#snapshot(repo!, rest) : undefined
      return found === undefined ? absent(request, response) : this.#pathsInfo(request, response, found)
    }
    if (repo !== undefined) {
      if (verb === 'tree') return this.#tree(request, response, repo, rest, query)
      const found = await this.#snapshot(repo, verb === undefined ? 'main' : rest)
      return found === undefined ? absent(request, response) : sendJson(request, response, found, modelInfo(found))
    }
    const file = /^\/([^/]+\/[^/]+)\/(?:resolve|raw)\/(.+)$/.exec(path ?? '')
    if (file === null) return absent(request, response)
    return this.#resolve(request, response, file[1]!, file[2]!)
  }

  /** A commit has no slash, and neither has any other revision that is known here. */
  async #resolve(request: IncomingMessage, response: ServerResponse, repo: string, rest: string): Promise<void> {
    const slash = rest.indexOf('/')
    const found = slash < 0 ? undefined : await this.#snapshot(repo, rest.slice(0, slash))
    if (found === undefined) return absent(request, response)
    const file = found.files.get(rest.slice(slash + 1))
    if (file === undefined) return absent(request, response, 'EntryNotFound')
    const name = await this.#contentName(file, rest.slice(slash + 1))
    const headers = {
      ...commitHeaders(found),
      'X-Linked-Size': file.sizeBytes,
      'X-Linked-ETag': `"${name}"`
    }
    const { store } = this.#deps
    if (await sendFile(request, response, file, { store, pool: this.#pool, headers, etag: `"${name}"` })) return
    // its view, or its blob, is gone: the next request finds out what is there
    this.#published.forget(file.manifest)
    absent(request, response, 'EntryNotFound')
  }

  async #tree(
    request: IncomingMessage,
    response: ServerResponse,
    repo: string,
    rest: string,
    query: URLSearchParams
  ): Promise<void> {
    const slash = rest.indexOf('/')
    const found = await this.#snapshot(repo, slash < 0 ? rest : rest.slice(0, slash))
    if (found === undefined) return absent(request, response)
    const folder = slash < 0 ? '' : `${rest.slice(slash + 1).replace(/\/+$/, '')}/`
    const isRecursive = ['true', '1'].includes(query.get('recursive') ?? '')
    const entries: unknown[] = []
    const folders = new Set<string>()
    for (const [name, file] of found.files) {
      if (!name.startsWith(folder)) continue
      const segments = name.slice(folder.length).split('/')
      for (let i = 1; i < segments.length; i++) {
        const at = folder + segments.slice(0, i).join('/')
        if (folders.has(at) || (i > 1 && !isRecursive)) continue
        folders.add(at)
        entries.push({ type: 'directory', oid: sha1(at), size: 0, path: at })
      }
      if (segments.length === 1 || isRecursive) entries.push(await this.#entry(name, file, found))
    }
    sendJson(request, response, found, entries)
  }

  async #pathsInfo(request: IncomingMessage, response: ServerResponse, found: Snapshot): Promise<void> {
    const paths = await readForm(request)
    if (paths === undefined) return refuse(request, response, 400, 'E_BAD_REQUEST', 'the body has a list "paths"')
    const entries: unknown[] = []
    for (const path of paths) {
      const file = found.files.get(path)
      if (file !== undefined) entries.push(await this.#entry(path, file, found))
    }
    sendJson(request, response, found, entries)
  }

  async #entry(path: string, file: PublishedFile, { commit, importedAt }: Snapshot): Promise<unknown> {
    const { sizeBytes: size, digest } = file
    const oid = await this.#contentName(file, path)
    // clients name their cache's folder by it
    const lastCommit = { id: commit, title: '', date: importedAt ?? new Date(0).toISOString() }
    if (!isLarge(path, file)) return { type: 'file', oid, size, path, lastCommit }
    const lfs = { oid: digestHex(digest), size, pointerSize: POINTER_BYTES }
    return { type: 'file', oid: sha1(oid), size, path, lfs, lastCommit }
  }

  /** What the hub names the bytes by: their SHA-256 in large-file storage, else git's SHA-1. */
  async #contentName(file: PublishedFile, name: string): Promise<string> {
    if (isLarge(name, file)) return digestHex(file.digest)
    const known = this.#gitNames.get(file.digest)
    if (known !== undefined) return known
    const hash = createHash('sha1').update(`blob ${file.sizeBytes}\0`)
    const found = hash.update(file.bytes ?? (await readFile(file.path))).digest('hex')
    this.#gitNames.set(file.digest, found)
    return found
  }

  /**
   * The artifacts of a repository at a commit, together. `main` is the commit of the latest import; other names are not known, since an
   * import keeps the commit alone.
   */
  async #snapshot(repo: string, revision: string): Promise<Snapshot | undefined> {
    const wanted = repo.toLowerCase()
    const states = (await this.#published.artifacts()).filter(
      ({ source }) => source.kind === 'hf' && source.repo?.toLowerCase() === wanted && source.revision !== undefined
    )
    const first = states.find(({ source }) => DEFAULT_BRANCH.has(revision) || source.revision === revision)
    if (first === undefined) return undefined
    const commit = first.source.revision!
    const files = new Map<string, PublishedFile>()
    for (const state of states.filter(({ source }) => source.revision === commit)) {
      for (const [name, file] of await this.#filesOf(state)) files.set(name, file)
    }
    if (files.size === 0) return undefined
    const sorted = new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))
    return { repo: first.source.repo!, commit, files: sorted, importedAt: first.importedAt }
  }

  /** By upstream name. An artifact that is not whole has nothing to show. */
  async #filesOf({ manifestDigest, source }: ArtifactState): Promise<[string, PublishedFile][]> {
    const files = await this.#published.files(manifestDigest).catch(() => [])
    const names = source.names ?? {}
    return files.map((file) => [Object.hasOwn(names, file.name) ? names[file.name]! : file.name, file])
  }
}

const isLarge = (name: string, { sizeBytes }: PublishedFile): boolean => isInLargeFileStorage(name, sizeBytes)
const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex')
const commitHeaders = ({ commit }: Snapshot): OutgoingHttpHeaders => ({ 'X-Repo-Commit': commit })

function modelInfo({ repo, commit, files, importedAt }: Snapshot): unknown {
  const at = importedAt ?? new Date(0).toISOString()
  return {
    _id: sha1(repo).slice(0, 24),
    id: repo,
    modelId: repo,
    author: repo.split('/')[0],
    sha: commit,
    lastModified: at,
    createdAt: at,
    private: false,
    gated: false,
    disabled: false,
    downloads: 0,
    likes: 0,
    tags: [],
    siblings: [...files.keys()].map((rfilename) => ({ rfilename }))
  }
}

function sendJson(request: IncomingMessage, response: ServerResponse, found: Snapshot, value: unknown): void {
  const headers = { ...commitHeaders(found), 'Content-Type': 'application/json; charset=utf-8' }
  sendBytes(request, response, Buffer.from(JSON.stringify(value)), headers)
}

/** As the hub says it, so that its clients raise their own errors. */
function absent(request: IncomingMessage, response: ServerResponse, code = 'RepoNotFound'): void {
  const what =
    code === 'RepoNotFound' ? 'this mirror does not have that repository' : 'the repository has no such file here'
  refuse(request, response, 404, 'E_NOT_FOUND', what, { 'X-Error-Code': code, 'X-Error-Message': what })
}

function decoded(path: string): string | undefined {
  try {
    return path.split('/').map(decodeURIComponent).join('/')
  } catch {
    return undefined
  }
}
