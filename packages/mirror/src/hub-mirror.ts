import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BlobReader } from '@svc/cas'
import { Gate, loopBudget } from '@svc/internal-concurrency'
import { HARDENING, refuse } from '@svc/internal-server'
import { digestHex, type Sha256Digest } from '@svc/ref'
import { isInLargeFileStorage } from '@svc/view'
import { ArtifactFiles, type FilesOf } from './artifact-files.ts'
import type { WaitingClient } from './demand.ts'
import { readForm } from './form.ts'
import { GitNames } from './git-names.ts'
import { absent, absentFile, commitHeaders, modelInfo, refsBody, sendHubJson, sha1Hex } from './hub-answers.ts'
import { ANSWER_MS } from './hub-demand.ts'
import { DEFAULT_BRANCH, type HubRevision, HubRevisions, isUpstream, type RepoFile } from './hub-revisions.ts'
import { filesOfTag, isGguf } from './llama-manifest.ts'
import { Rendered } from './rendered.ts'
import { clientOf, readerOf, sendArriving } from './send-file.ts'
import { notNowOf, type ServedModels } from './served-models.ts'

/** Size of a pointer file of large-file storage, which clients only display. */
const POINTER_BYTES = 134

/** More files than any repository has to choose among. */
const MAX_CHOICES = 2_000

/** A file of an artifact is gone: what is cached about it is outdated. */
class GoneError extends Error {
  override readonly name = 'GoneError'
  readonly manifest: Sha256Digest

  constructor(manifest: Sha256Digest) {
    super(`a file of ${manifest} is gone`)
    this.manifest = manifest
  }
}

/**
 * Responds like a model hub, for repositories that were imported from the hub, at their imported commits (spec add.20).
 * Read-only; private and restricted models do not exist here.
 */
export class HubMirror {
  readonly port = { name: 'hub mirror', methods: ['GET', 'HEAD', 'POST'], hasPages: true }
  readonly #deps: FilesOf
  readonly #served: ServedModels
  readonly #gitNames = new GitNames()
  readonly #files: ArtifactFiles
  readonly #snapshots: HubRevisions
  readonly #rendered = new Rendered()
  readonly #lists = new Gate(1)

  constructor(deps: FilesOf) {
    this.#deps = deps
    this.#served = deps.served
    this.#files = new ArtifactFiles({ ...deps, door: 'hub-mirror', mayStart: false })
    this.#snapshots = new HubRevisions(deps.served, this.#files)
  }

  async route(request: IncomingMessage, response: ServerResponse, url: string): Promise<void> {
    const client = clientOf(request, response)
    const path = decoded(url.split('?', 1)[0]!) ?? ''
    const query = new URLSearchParams(url.slice(url.indexOf('?') + 1 || url.length))
    const paths = request.method === 'POST' && INFO.exec(path)?.[2] === 'paths-info' ? await readForm(request) : []
    const asked = { request, response, client, path, query, paths }
    const answer = (): Promise<void> => this.#answer(asked)
    try {
      await answer()
    } catch (error) {
      if (!(error instanceof GoneError)) {
        const { status, code, message, headers } = notNowOf(error)
        if (status === 404) return absent(response, 'RepoNotFound', message)
        return refuse(response, status, code, message, headers)
      }
      // the cache was deleted: make the view again
      this.#served.files.forget(error.manifest)
      await answer().catch((again: unknown) => {
        if (!(again instanceof GoneError)) throw again
        absent(response, 'EntryNotFound')
      })
    }
  }

  async #answer(asked: Asked): Promise<void> {
    const { request, response, client, path, query, paths } = asked
    const [, repo, verb, rest = ''] = INFO.exec(path) ?? []
    if (request.method === 'POST') {
      const found = verb === 'paths-info' ? await this.#repository(client, repo!, rest) : undefined
      if (found === undefined) return this.#unknown(response, repo)
      if (paths === undefined)
        return refuse(response, 400, 'E_BAD_REQUEST', 'the body needs a list "paths" of at most 1,000 entries')
      return this.#send(asked, repo!, found, await this.#pathsInfo(found, paths))
    }
    const [, named] = /^\/api\/models\/([^/]+(?:\/[^/]+)?)\/refs$/.exec(path) ?? []
    if (named !== undefined) {
      const found = await this.#repository(client, named, 'main')
      if (found === undefined) return this.#unknown(response, named)
      return this.#send(asked, named, found, refsBody(found, await this.#snapshots.followed(named), query))
    }
    if (repo !== undefined) {
      if (verb === 'tree') return this.#tree(asked, repo, rest)
      const found = await this.#repository(client, repo, verb === undefined ? 'main' : rest)
      if (found === undefined) return this.#unknown(response, repo)
      const withFiles = isSet(query, 'blobs')
      const info = (): Promise<unknown> => this.#info(found, withFiles)
      return this.#send(asked, repo, found, await this.#rendered.get(`${found.id} ${withFiles} info`, info))
    }
    const [, model, tag] = /^\/v2\/([^/]+\/[^/]+)\/manifests\/([^/]+)$/.exec(path) ?? []
    if (tag !== undefined) return this.#llamaManifest(asked, model!, tag)
    const file = /^\/([^/]+(?:\/[^/]+)?)\/(?:resolve|raw)\/(.+)$/.exec(path)
    if (file === null) return absent(response)
    return this.#resolve(asked, file[1]!, file[2]!)
  }

  /** What llama.cpp asks for before it looks at branches: which file a tag is. */
  async #llamaManifest(asked: Asked, repo: string, tag: string): Promise<void> {
    const found = await this.#repository(asked.client, repo, 'main')
    if (found === undefined) return this.#unknown(asked.response, repo)
    const ggufs: string[] = []
    for (const path of found.files.keys()) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      if (isGguf(path) && ggufs.length < MAX_CHOICES) ggufs.push(path)
    }
    const chosen = filesOfTag(ggufs, tag)
    if (chosen === undefined) return absent(asked.response, 'EntryNotFound', absentFile(`GGUF ${tag}`, found))
    const { gguf, mmproj } = chosen
    const body = {
      schemaVersion: 2,
      mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
      ggufFile: await this.#sibling(gguf, found),
      ...(mmproj !== undefined && { mmprojFile: await this.#sibling(mmproj, found) })
    }
    return this.#send(asked, repo, found, Buffer.from(JSON.stringify(body)))
  }

  /** Neither commits nor any other known revisions contain a slash. */
  async #resolve({ request, response, client }: Asked, repo: string, rest: string): Promise<void> {
    const slash = rest.indexOf('/')
    const found = slash < 0 ? undefined : await this.#repository(client, repo, rest.slice(0, slash))
    if (found === undefined) return this.#unknown(response, repo)
    const path = rest.slice(slash + 1)
    const file = found.files.get(path)
    if (file === undefined)
      return this.#answerAbout(response, repo, found, () => absent(response, 'EntryNotFound', absentFile(path, found)))
    const name = await this.#contentName(file, path)
    const headers = {
      ...HARDENING,
      ...commitHeaders(found),
      'X-Linked-Size': file.sizeBytes,
      'X-Linked-ETag': `"${name}"`
    }
    const mayGive = (): Promise<boolean> => this.#mayGive(repo, found)
    const options = { headers, etag: `"${name}"`, mayGive }
    if (!isUpstream(file)) {
      const awaited = { name: found.repo, manifest: file.manifest, file }
      if (!(await this.#files.send(request, response, awaited, { ...options, inParts: false })))
        throw new GoneError(file.manifest)
      return
    }
    const demand = this.#deps.ways.hub!
    const open = async (): Promise<BlobReader> =>
      file.isLarge
        ? demand.large(found.upstream!, file, client)
        : readerOf(await demand.small(found.upstream!, file, client.host))
    if (!(await sendArriving(request, response, file, open, { ...options, pool: this.#files.pool })))
      return this.#unknown(response, repo)
  }

  /** Sends a document about a repository that was asked for as `repo`. */
  #send({ request, response }: Asked, repo: string, found: HubRevision, bytes: Uint8Array): Promise<void> {
    return this.#answerAbout(response, repo, found, () => sendHubJson(request, response, found, bytes))
  }

  async #answerAbout(response: ServerResponse, repo: string, found: HubRevision, answer: () => void): Promise<void> {
    if (!(await this.#mayGive(repo, found))) return this.#unknown(response, repo)
    answer()
  }

  /** Asked last: the owner may have changed their mind since the snapshot was made. */
  async #mayGive(repo: string, { states, upstream }: HubRevision): Promise<boolean> {
    if (upstream !== undefined && ((await this.#withholds(repo)) || (await this.#withholds(upstream.repo))))
      return false
    const manifests = new Set(states.map(({ manifestDigest }) => manifestDigest))
    return (await this.#served.given(manifests, 'hub-mirror')).size === manifests.size
  }

  /** Clients distinguish an absent revision from an absent repository. */
  async #unknown(response: ServerResponse, repo: string | undefined): Promise<void> {
    const isHere = repo !== undefined && (await this.#served.ofRepo(repo.toLowerCase())).length > 0
    absent(response, isHere ? 'RevisionNotFound' : 'RepoNotFound')
  }

  async #tree(asked: Asked, repo: string, rest: string): Promise<void> {
    const { response, client, query } = asked
    const [revision = '', ...segments] = rest.split('/')
    const found = await this.#repository(client, repo, revision)
    if (found === undefined) return this.#unknown(response, repo)
    while (segments.at(-1) === '') segments.pop()
    const folder = segments.map((segment) => `${segment}/`).join('')
    // responses are cached by folder name, so accept only existing ones
    if (folder !== '' && !found.folders.has(folder)) return absent(response, 'EntryNotFound')
    const isRecursive = isSet(query, 'recursive')
    const list = (): Promise<unknown> => this.#entriesBelow(folder, isRecursive, found)
    const bytes = await this.#rendered.get(`${found.id} ${isRecursive} ${folder}`, list)
    return this.#send(asked, repo, found, bytes)
  }

  async #entriesBelow(folder: string, isRecursive: boolean, found: HubRevision): Promise<unknown[]> {
    const entries: unknown[] = []
    const folders = new Set<string>()
    for (const [name, file] of found.files) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      if (!name.startsWith(folder)) continue
      const segments = name.slice(folder.length).split('/')
      for (let i = 1; i < segments.length; i++) {
        const at = folder + segments.slice(0, i).join('/')
        if (folders.has(at) || (i > 1 && !isRecursive)) continue
        folders.add(at)
        entries.push({ type: 'directory', oid: sha1Hex(at), size: 0, path: at })
      }
      if (segments.length === 1 || isRecursive) entries.push(await this.#entry(name, file, found))
    }
    return entries
  }

  #pathsInfo(found: HubRevision, paths: readonly string[]): Promise<Buffer> {
    const list = async (): Promise<Buffer> => {
      const entries: unknown[] = []
      for (const path of paths) {
        if (loopBudget.isOver('lists')) await loopBudget.next('lists')
        const file = found.files.get(path)
        if (file !== undefined) entries.push(await this.#entry(path, file, found))
      }
      return Buffer.from(JSON.stringify(entries))
    }
    return this.#lists.run(undefined, list)
  }

  /** With `withFiles`, also their sizes and the names of their content. */
  async #info(found: HubRevision, withFiles: boolean): Promise<unknown> {
    const siblings: unknown[] = []
    for (const rfilename of found.files.keys()) {
      if (loopBudget.isOver('lists')) await loopBudget.next('lists')
      if (!withFiles) {
        siblings.push({ rfilename })
        continue
      }
      siblings.push(await this.#sibling(rfilename, found))
    }
    return modelInfo(found, siblings)
  }

  async #sibling(rfilename: string, { files }: HubRevision): Promise<unknown> {
    const file = files.get(rfilename)!
    const { sizeBytes: size } = file
    const name = await this.#contentName(file, rfilename)
    const lfs = isLarge(rfilename, file) ? { lfs: { sha256: name, size, pointerSize: POINTER_BYTES } } : {}
    return { rfilename, size, blobId: isLarge(rfilename, file) ? sha1Hex(name) : name, ...lfs }
  }

  async #entry(path: string, file: RepoFile, { commit, modifiedAt }: HubRevision): Promise<unknown> {
    const { sizeBytes: size } = file
    const oid = await this.#contentName(file, path)
    // clients use it as the name of their cache folder
    const lastCommit = { id: commit, title: '', date: modifiedAt ?? new Date(0).toISOString() }
    if (!isLarge(path, file)) return { type: 'file', oid, size, path, lastCommit }
    const lfs = { oid, size, pointerSize: POINTER_BYTES }
    return { type: 'file', oid: sha1Hex(oid), size, path, lfs, lastCommit }
  }

  /** The hub's name of a file's content: its SHA-256 in large-file storage, else git's SHA-1. */
  async #contentName(file: RepoFile, name: string): Promise<string> {
    if (isUpstream(file)) return file.sha256 === undefined ? file.gitBlobSha1! : digestHex(file.sha256)
    if (isLarge(name, file)) return digestHex(file.digest)
    try {
      return await this.#gitNames.of(file)
    } catch (error) {
      throw (error as NodeJS.ErrnoException).code === 'ENOENT' ? new GoneError(file.manifest) : error
    }
  }

  /** A repository with its local files and those that could be fetched. @throws NotNowError */
  async #repository(client: WaitingClient, repo: string, revision: string): Promise<HubRevision | undefined> {
    const lowerCase = repo.toLowerCase()
    await this.#files.described(client, ANSWER_MS, ({ source }) => source.repo!.toLowerCase() === lowerCase)
    const here = await this.#snapshots.at(repo, revision)
    const demand = this.#deps.ways.hub
    if (demand?.allows(repo) !== true || (await this.#withholds(repo))) return here
    const isMain = DEFAULT_BRANCH.has(revision)
    // an import by commit alone answers for the branch only if the branch is unknown
    const isSure = here !== undefined && (!isMain || here.branch !== undefined)
    const upstream = await demand.look({
      repo,
      revision: isMain ? undefined : revision,
      commitHere: isSure ? here.commit : undefined,
      branch: isSure ? here.branch : undefined,
      isBrief: here !== undefined,
      host: client.host
    })
    // the hub may have redirected to another repository: its own name counts as well
    if (upstream === undefined || (await this.#withholds(upstream.repo))) return here
    return this.#snapshots.joined(isSure ? here : await this.#snapshots.at(upstream.repo, upstream.commit), upstream)
  }

  #withholds(repo: string): Promise<boolean> {
    return this.#served.withholds(repo.toLowerCase())
  }
}

const INFO = /^\/api\/models\/([^/]+(?:\/[^/]+)?)(?:\/(revision|tree|paths-info)\/(.+))?$/

/** A request, and what was read of it. */
interface Asked {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly client: WaitingClient
  readonly path: string
  readonly query: URLSearchParams
  readonly paths: readonly string[] | undefined
}

const isSet = (query: URLSearchParams, name: string): boolean => ['true', '1'].includes(query.get(name) ?? '')

const isLarge = (name: string, file: RepoFile): boolean =>
  isUpstream(file) ? file.sha256 !== undefined : isInLargeFileStorage(name, file.sizeBytes)

function decoded(path: string): string | undefined {
  try {
    return path.split('/').map(decodeURIComponent).join('/')
  } catch {
    return undefined
  }
}
