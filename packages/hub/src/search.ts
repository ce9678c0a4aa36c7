import type { HubHit } from './documents.ts'
import { HubError } from './errors.ts'
import { fetchDocument, type ListingOptions, nextPage } from './listing.ts'
import type { Net } from './net.ts'

/** What to look for. Everything but `words` narrows. */
export interface HubQuery {
  readonly words: string
  readonly formats?: readonly ('gguf' | 'safetensors')[] | undefined
  /** As the hub names licences, e.g. `apache-2.0`. */
  readonly license?: string | undefined
  readonly minParameters?: number | undefined
  readonly maxParameters?: number | undefined
  /** Entries of one page, at most 100; default 20. */
  readonly limit?: number | undefined
  /** Of the page before. */
  readonly cursor?: string | undefined
}

/** A page of hits, the most downloaded first. */
export interface HubHits {
  readonly hits: readonly HubHit[]
  /** Of the next page; absent on the last one. */
  readonly cursor?: string
}

const MAX_LIMIT = 100
const MAX_CURSOR_CHARS = 4_096
const FIELDS = ['tags', 'downloads', 'gated', 'private', 'lastModified', 'safetensors', 'gguf']

/** One page. Errors: see `Hub.search`. */
export async function searchHub(net: Net, query: HubQuery, options: ListingOptions): Promise<HubHits> {
  const limit = Math.min(query.limit ?? 20, MAX_LIMIT)
  const url = searchUrl(net.endpoint.base, query, limit)
  try {
    const of = { repoId: 'a search' }
    const { value, response } = await fetchDocument(net, url, of, options, 'search', { ...of, limit })
    if (value === undefined) throw unusable('its answer is not a list')
    const hits = value.filter(inRange(query))
    // only the cursor: the next request is of our own making
    const cursor = nextPage(response, url, net, 'a search')?.searchParams.get('cursor')
    return { hits, ...(cursor && cursor.length <= MAX_CURSOR_CHARS && { cursor }) }
  } catch (error) {
    if (!(error instanceof HubError)) throw error
    // these are about a repository
    if (error.reason === 'bad-listing') throw unusable(error.message.slice(error.message.indexOf(': ') + 2), error)
    if (ABOUT_REPOS.includes(error.reason)) throw unusable(`it answers ${error.details?.status}`, error)
    throw error
  }
}

const ABOUT_REPOS: readonly string[] = [
  'no-such-repo',
  'no-such-revision',
  'hidden-or-absent',
  'gated',
  'disabled',
  'legal'
]

const unusable = (why: string, cause?: unknown): HubError =>
  new HubError('E_SOURCE_UNAVAILABLE', 'bad-answer', `the hub sent no usable answer to the search: ${why}`, {}, cause)

function searchUrl(base: string, query: HubQuery, limit: number): URL {
  const { words, formats = [], license, minParameters, maxParameters, cursor } = query
  const url = new URL(`${base}/api/models`)
  const add = (key: string, value: string): void => url.searchParams.append(key, value)
  add('search', words)
  for (const format of formats) add('filter', format)
  if (license !== undefined) add('filter', `license:${license}`)
  const bounds = [
    ...(minParameters === undefined ? [] : [`min:${inBillions(minParameters)}`]),
    ...(maxParameters === undefined ? [] : [`max:${inBillions(maxParameters)}`])
  ]
  if (bounds.length > 0) add('num_parameters', bounds.join(','))
  add('sort', 'downloads')
  add('direction', '-1')
  add('limit', `${limit}`)
  for (const field of FIELDS) add('expand[]', field)
  if (cursor !== undefined) add('cursor', cursor)
  return url
}

const inBillions = (parameters: number): string => `${parameters / 1e9}B`

/** Drops what a hub that ignores the bounds sends all the same; keeps what it does not count. */
const inRange =
  ({ minParameters = 0, maxParameters = Number.POSITIVE_INFINITY }: HubQuery) =>
  ({ parameters = minParameters }: HubHit): boolean =>
    parameters >= minParameters && parameters <= maxParameters
