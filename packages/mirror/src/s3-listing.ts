import { loopBudget } from '@svc/internal-concurrency'
import { compareText } from '@svc/ref'
import { BUCKET, document, element, S3Error } from './s3-answers.ts'

const MAX_KEYS = 1_000
/** How many artifacts' files are looked up for one page: each may have to be laid out first. */
const MAX_READ = 64

/** Sorts after every continuation of a key. */
const LAST = '\u{10ffff}'

/** Something whose keys have a prefix in common. */
export interface KeyFolder {
  /** `ns/name/quant/` */
  readonly prefix: string
}

export interface ListedObject {
  readonly key: string
  readonly sizeBytes: number
  readonly etag: string
  readonly modifiedAt: Date
}

/** Where a page begins: after a key, or after all keys that begin with it. */
interface PageStart {
  readonly text: string
  readonly isFolder: boolean
}

export interface ListQuery {
  readonly isFirstVersion: boolean
  readonly prefix: string
  readonly delimiter: string
  readonly maxKeys: number
  readonly isUrlEncoded: boolean
  readonly marker: PageStart
  /** As sent, for the response. */
  readonly startAfter: string | undefined
  readonly token: string | undefined
}

export interface ListPage<T> {
  readonly objects: readonly ListedObject[]
  readonly folders: readonly string[]
  /** Undefined on the last page. */
  readonly next: PageStart | undefined
  /** Those that it shows something of. */
  readonly of: ReadonlySet<T>
}

/** Both versions of ListObjects. @throws S3Error */
export function parseListQuery(query: URLSearchParams): ListQuery {
  const isFirstVersion = !query.has('list-type')
  if (!isFirstVersion && query.get('list-type') !== '2') throw invalid('list-type must be 2')
  const maxKeys = query.get('max-keys') ?? `${MAX_KEYS}`
  if (!/^\d{1,10}$/.test(maxKeys)) throw invalid('max-keys must be a number')
  const encoding = query.get('encoding-type') ?? ''
  if (encoding !== '' && encoding !== 'url') throw invalid('encoding-type must be url')
  const delimiter = query.get('delimiter') ?? ''
  const [token, startAfter] = isFirstVersion
    ? [undefined, query.get('marker') ?? undefined]
    : [query.get('continuation-token') ?? undefined, query.get('start-after') ?? undefined]
  const isFolder = isFirstVersion && delimiter !== '' && startAfter?.endsWith(delimiter) === true
  return {
    isFirstVersion,
    prefix: query.get('prefix') ?? '',
    delimiter,
    maxKeys: Math.min(Number(maxKeys), MAX_KEYS),
    isUrlEncoded: encoding === 'url',
    marker: token === undefined ? { text: startAfter ?? '', isFolder } : parseToken(token),
    startAfter,
    token
  }
}

const invalid = (what: string): S3Error => new S3Error('InvalidArgument', what)

function parseToken(token: string): PageStart {
  const text = Buffer.from(token, 'base64url').toString('utf8')
  if (!/^[kf]./su.test(text) || formatToken({ text: text.slice(1), isFolder: text[0] === 'f' }) !== token)
    throw invalid('the continuation token is not one of this bucket')
  return { text: text.slice(1), isFolder: text[0] === 'f' }
}

const formatToken = ({ text, isFolder }: PageStart): string =>
  Buffer.from(`${isFolder ? 'f' : 'k'}${text}`).toString('base64url')

/** Collects a page from entries in the order of their keys. */
class PageBuilder<T> {
  readonly objects: ListedObject[] = []
  readonly folders: string[] = []
  readonly of = new Set<T>()
  readonly #query: ListQuery
  #last: PageStart
  next: PageStart | undefined

  constructor(query: ListQuery) {
    this.#query = query
    this.#last = query.marker
  }

  /** The key up to the first delimiter after the prefix; undefined if there is none. */
  folderOf(key: string): string | undefined {
    const { prefix, delimiter } = this.#query
    if (delimiter === '' || !key.startsWith(prefix)) return undefined
    const at = key.indexOf(delimiter, prefix.length)
    return at < 0 ? undefined : key.slice(0, at + delimiter.length)
  }

  /** Whether the page is past all keys with this prefix. */
  isPast(prefix: string): boolean {
    const { text, isFolder } = this.#last
    if ((isFolder && prefix.startsWith(text)) || text === prefix + LAST) return true
    return compareText(prefix, text) < 0 && !text.startsWith(prefix)
  }

  isAfter(key: string): boolean {
    const { text, isFolder } = this.#last
    return !(isFolder && key.startsWith(text)) && compareText(key, text) > 0
  }

  /** Adds an object, or a folder by its name. @returns false if the page is full */
  add(from: T, entry: ListedObject | string): boolean {
    if (this.objects.length + this.folders.length >= this.#query.maxKeys) {
      if (this.#query.maxKeys > 0) this.endHere()
      return false
    }
    this.of.add(from)
    if (typeof entry === 'string') {
      this.folders.push(entry)
      this.#last = { text: entry, isFolder: true }
    } else {
      this.objects.push(entry)
      this.#last = { text: entry.key, isFolder: false }
    }
    return true
  }

  /** Goes past all keys with this prefix. */
  skip(prefix: string): void {
    if (!this.#last.text.startsWith(prefix)) this.#last = { text: prefix + LAST, isFolder: false }
  }

  endHere(): void {
    this.next = this.#last
  }
}

/**
 * Lists one page. `folders` are sorted by prefix; `objectsOf` gives the objects of one in any order, and is called only
 * where the prefix alone does not decide.
 */
export async function listPage<T extends KeyFolder>(
  query: ListQuery,
  folders: readonly T[],
  objectsOf: (folder: T) => Promise<readonly ListedObject[]>
): Promise<ListPage<T>> {
  const page = new PageBuilder<T>(query)
  let read = 0
  for (const folder of folders) {
    if (loopBudget.isOver('lists')) await loopBudget.next('lists')
    const { prefix: at } = folder
    if (!(at.startsWith(query.prefix) || query.prefix.startsWith(at)) || page.isPast(at)) continue
    const common = page.isAfter(at) ? page.folderOf(at) : undefined
    if (common !== undefined) {
      if (!page.add(folder, common)) break
      continue
    }
    if (++read > MAX_READ) {
      page.endHere()
      break
    }
    const objects = [...(await objectsOf(folder))].sort((a, b) => compareText(a.key, b.key))
    let isFull = false
    for (const object of objects) {
      if (!object.key.startsWith(query.prefix) || !page.isAfter(object.key)) continue
      isFull = !page.add(folder, page.folderOf(object.key) ?? object)
      if (isFull) break
    }
    if (isFull) break
    page.skip(at)
  }
  return page
}

export function formatPage(query: ListQuery, { objects, folders, next }: Omit<ListPage<unknown>, 'of'>): string {
  const name = (text: string): string =>
    query.isUrlEncoded ? encodeURIComponent(text.toWellFormed()).replaceAll('%2F', '/') : text
  const optional = (tag: string, text: string | undefined): string => (text === undefined ? '' : element(tag, text))
  const { isFirstVersion, startAfter, token, delimiter } = query
  const where = isFirstVersion
    ? element('Marker', name(startAfter ?? '')) + optional('NextMarker', next && name(next.text))
    : element('KeyCount', objects.length + folders.length) +
      optional('StartAfter', startAfter && name(startAfter)) +
      optional('ContinuationToken', token) +
      optional('NextContinuationToken', next && formatToken(next))
  const contents = objects.map(
    ({ key, sizeBytes, etag, modifiedAt }) =>
      `<Contents>${element('Key', name(key))}${element('LastModified', modifiedAt.toISOString())}${element('ETag', etag)}${element('Size', sizeBytes)}${element('StorageClass', 'STANDARD')}</Contents>`
  )
  const common = folders.map((folder) => `<CommonPrefixes>${element('Prefix', name(folder))}</CommonPrefixes>`)
  return document(
    'ListBucketResult',
    element('Name', BUCKET) +
      element('Prefix', name(query.prefix)) +
      optional('Delimiter', delimiter === '' ? undefined : name(delimiter)) +
      element('MaxKeys', query.maxKeys) +
      optional('EncodingType', query.isUrlEncoded ? 'url' : undefined) +
      element('IsTruncated', next !== undefined) +
      where +
      contents.join('') +
      common.join('')
  )
}
