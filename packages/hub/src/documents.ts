import { isObject, JsonExcessError, type JsonOptions, own, parseJson } from '@svc/internal-http'
import { isRepoId, isRevision } from './endpoint.ts'
import { HubError, refusedListing } from './errors.ts'
import { type PageAbout, type TreeEntry, treeEntries, UntoldHash } from './tree.ts'
import { XetAnswerError } from './xet/answer-error.ts'
import { parseNamedUrl, parseReconstruction, type Reconstruction } from './xet/reconstruction.ts'

/** Whose token the hub object sends. */
export interface HubAccount {
  /** Absent where the hub accepts the token without a name, or does not tell about accounts, as mirrors. */
  readonly name?: string
}

/** A repository at the commit that a revision points to. */
export interface HubInfo {
  /** In the hub's own spelling; after a rename it differs from the requested one. */
  readonly repoId: string
  /** The commit that the revision pointed to: 40 hex characters. */
  readonly commit: string
  readonly private: boolean
  readonly gated: boolean
  /**
   * True when these bytes required a token, or may have: private or gated, or a token was sent and the hub does not
   * say.
   */
  readonly restricted: boolean
  /** As the repository's card names it, e.g. `apache-2.0`; absent where the hub does not say. */
  readonly license?: string
  /** How many files of the commit a mirror says it lacks; absent for none, or if it does not say. */
  readonly leftOut?: number
}

/** A repository that the hub found. What the hub does not say, or says in an unknown form, is absent. */
export interface HubHit {
  readonly repoId: string
  readonly gated: boolean
  readonly private: boolean
  readonly formats: readonly ('gguf' | 'safetensors')[]
  readonly license?: string
  readonly parameters?: number
  readonly downloads?: number
  /** RFC 3339. */
  readonly updatedAt?: string
}

interface Document<About, Found> {
  readonly about: About
  readonly found: Found
}

/** For messages. */
interface OfRepo {
  readonly repoId: string
}

/** What is read of the answers of a hub and of its storage, by their kind, and what else decides that. All plain data. */
export interface HubDocuments {
  readonly account: Document<OfRepo, HubAccount>
  readonly info: Document<OfRepo, Omit<HubInfo, 'restricted' | 'leftOut'> & { readonly isUnsaid: boolean }>
  readonly page: Document<PageAbout, readonly TreeEntry[]>
  readonly refs: Document<OfRepo, { readonly branches: readonly string[]; readonly commits: readonly string[] }>
  readonly search: Document<OfRepo & { readonly limit: number }, readonly HubHit[] | undefined>
  readonly reconstruction: Document<{ readonly sizeBytes: number; readonly from: string }, Reconstruction>
  readonly xetToken: Document<{ readonly from: string }, XetToken>
}

/** Access to the chunks of a repository. */
interface XetToken {
  readonly casUrl: string
  readonly token: string
  readonly untilMs: number
}

/**
 * Reads an answer as {@link HUB_DOCUMENTS} does, and throws as they do: perhaps in a thread, since the answer's author chooses how long
 * reading it takes.
 */
export type ReadHubDocument = <Kind extends keyof HubDocuments>(
  kind: Kind,
  bytes: Uint8Array,
  about: HubDocuments[Kind]['about']
) => Promise<HubDocuments[Kind]['found']>

/** The readers of a hub's answers. @throws SyntaxError for no JSON; those of {@link HUB_DOCUMENT_ERRORS} */
export const HUB_DOCUMENTS: {
  readonly [Kind in keyof HubDocuments]: (
    bytes: Uint8Array,
    about: HubDocuments[Kind]['about']
  ) => HubDocuments[Kind]['found']
} = {
  account: (bytes, about) => {
    const answer = answerIn(bytes, about)
    const name = isObject(answer) ? own(answer, 'name') : undefined
    return typeof name === 'string' && /^[\w.-]{1,96}$/.test(name) ? { name } : {}
  },
  info: infoIn,
  page: (bytes, about) => treeEntries(answerIn(bytes, about, PAGE), about),
  refs: refsIn,
  search: (bytes, about) => {
    const answer = answerIn(bytes, about)
    // no more than were asked for, whatever it sends
    return Array.isArray(answer) ? (answer as unknown[]).slice(0, about.limit).flatMap(hitOf) : undefined
  },
  reconstruction: (bytes, { sizeBytes, from }) => parseReconstruction(storageAnswerIn(bytes), sizeBytes, new URL(from)),
  xetToken: xetTokenIn
}

/** The classes of what {@link HUB_DOCUMENTS} throw, by their names. */
export const HUB_DOCUMENT_ERRORS = { HubError, SyntaxError, UntoldHash, XetAnswerError } as const

export const readHubDocumentHere: ReadHubDocument = async (kind, bytes, about) => HUB_DOCUMENTS[kind](bytes, about)

const SHA1 = /^[0-9a-f]{40}$/
/** The rest of the answer is as long as a listing. */
const INFO: JsonOptions = { only: ['sha', 'id', 'modelId', 'private', 'gated', 'tags'] }
/** Some hubs send a whole listing in one page. */
const PAGE: JsonOptions = { values: 250_000 }
/** Enough for the chunks whose lengths are given, and for 10,000 xorbs. */
const STORAGE: JsonOptions = { values: 200_000, keys: 10_000 }
const MAX_TOKEN_LENGTH = 16_000

function answerIn(bytes: Uint8Array, { repoId }: OfRepo, options?: JsonOptions): unknown {
  try {
    return parseJson(bytes, options)
  } catch (error) {
    if (error instanceof JsonExcessError && error.bound !== 'depth')
      throw refusedListing(repoId, `a response has ${error.message}`)
    throw new SyntaxError((error as Error).message)
  }
}

function storageAnswerIn(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes, STORAGE)
  } catch {
    throw new XetAnswerError('a response is not JSON, or is too large')
  }
}

function infoIn(bytes: Uint8Array, about: OfRepo): HubDocuments['info']['found'] {
  const answer = answerIn(bytes, about, INFO)
  const info = isObject(answer) ? answer : {}
  const commit = own(info, 'sha')
  if (typeof commit !== 'string' || !SHA1.test(commit))
    throw refusedListing(about.repoId, 'the hub does not say which commit the revision points to')
  const repoId = own(info, 'id') ?? own(info, 'modelId') ?? about.repoId
  if (!isRepoId(repoId)) throw refusedListing(about.repoId, 'the hub gives it an impossible name')
  const [isPrivate, gated] = [own(info, 'private'), own(info, 'gated')]
  return {
    repoId,
    commit,
    private: isPrivate === true,
    gated: gated !== undefined && gated !== false && gated !== null,
    isUnsaid: isPrivate === undefined || gated === undefined,
    ...licenseIn(tagsIn(own(info, 'tags')))
  }
}

const MAX_TAGS = 1_000

/** The tags of a repository; none where the hub gives no list. */
const tagsIn = (tags: unknown): readonly unknown[] => (Array.isArray(tags) ? tags.slice(0, MAX_TAGS) : [])

function licenseIn(tags: readonly unknown[]): Pick<HubInfo, 'license'> {
  const named = tags.map((tag) => /^license:([\w.+-]{1,64})$/.exec(typeof tag === 'string' ? tag : '')?.[1])
  const license = named.find((each) => each !== undefined)
  return license === undefined ? {} : { license }
}

function refsIn(bytes: Uint8Array, about: OfRepo): HubDocuments['refs']['found'] {
  const answer = answerIn(bytes, about)
  const [branches, tags] = [refsOf(answer, 'branches', about), refsOf(answer, 'tags', about)]
  const names = branches.map((ref) => own(ref, 'name'))
  const commits = [...branches, ...tags].map((ref) => own(ref, 'targetCommit'))
  return {
    branches: names.filter((name): name is string => typeof name === 'string' && isRevision(name)).sort(),
    commits: commits.filter((commit): commit is string => typeof commit === 'string' && SHA1.test(commit))
  }
}

/** Some hubs send no list of tags. */
function refsOf(
  answer: unknown,
  kind: 'branches' | 'tags',
  { repoId }: OfRepo
): readonly Readonly<Record<string, unknown>>[] {
  const refs = isObject(answer) ? own(answer, kind) : undefined
  if (refs === undefined && kind === 'tags') return []
  if (!Array.isArray(refs)) throw refusedListing(repoId, `the hub sent no list of its ${kind}`)
  return (refs as unknown[]).filter(isObject)
}

function xetTokenIn(bytes: Uint8Array, { from }: HubDocuments['xetToken']['about']): XetToken {
  const value = storageAnswerIn(bytes)
  const answer = isObject(value) ? value : {}
  const [token, until] = [own(answer, 'accessToken'), own(answer, 'exp')]
  if (typeof token !== 'string' || token.length > MAX_TOKEN_LENGTH || !/^[\x21-\x7e]+$/.test(token))
    throw new XetAnswerError('the hub gives no token for chunks')
  if (!Number.isSafeInteger(until)) throw new XetAnswerError('the hub does not say when a token for chunks expires')
  const { href: casUrl } = parseNamedUrl(own(answer, 'casUrl'), new URL(from))
  return { casUrl, token, untilMs: (until as number) * 1_000 }
}

const FORMATS = ['gguf', 'safetensors'] as const

function hitOf(entry: unknown): HubHit[] {
  if (!isObject(entry)) return []
  const repoId = own(entry, 'id') ?? own(entry, 'modelId')
  if (!isRepoId(repoId)) return []
  const tags = tagsIn(own(entry, 'tags'))
  const parameters = countIn(own(entry, 'safetensors'), 'total') ?? countIn(own(entry, 'gguf'), 'total')
  const downloads = countIn(entry, 'downloads')
  const updatedAt = own(entry, 'lastModified')
  const gated = own(entry, 'gated')
  return [
    {
      repoId,
      gated: gated !== undefined && gated !== null && gated !== false,
      private: own(entry, 'private') === true,
      formats: FORMATS.filter((format) => tags.includes(format)),
      ...licenseIn(tags),
      ...(parameters !== undefined && { parameters }),
      ...(downloads !== undefined && { downloads }),
      ...(typeof updatedAt === 'string' && TIME.test(updatedAt) && { updatedAt })
    }
  ]
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/

function countIn(object: unknown, key: string): number | undefined {
  const value = isObject(object) ? own(object, key) : undefined
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined
}
