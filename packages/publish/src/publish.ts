import { HttpClient } from '@svc/internal-http'
import { checkObject, type RangeReader, throughUrl } from './check.ts'
import { documentObject } from './content.ts'
import { PublishError } from './errors.ts'
import { addToListing, LISTING_KEY, type Listing, listingBytes, MAX_LISTING_BYTES, parseListing } from './listing.ts'
import { PAGE_KEY, PAGE_MARK, pageBytes } from './page.ts'
import type { Publication, PublishedTorrent } from './publication.ts'
import type { PublishedObject, StoredDocument, Target } from './target.ts'

/** A progress snapshot. */
export interface PublishProgress {
  readonly phase: 'writing' | 'checking'
  readonly bytesDone: number
  readonly bytesTotal: number
  readonly filesDone: number
  readonly filesTotal: number
  /** The object being written or checked. */
  readonly file?: { readonly name: string; readonly bytesDone: number; readonly bytesTotal: number }
}

/** Options of {@link publish}. */
export interface PublishOptions {
  /** Base URL for readers; recorded in the index. */
  readonly url?: string | undefined
  /** Read samples back from `url` as well, without credentials, and not only from the target. */
  readonly checkUrl?: boolean | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: PublishProgress) => void) | undefined
}

/** The outcome of {@link publish}. */
export interface Published {
  /** Bytes of objects that were written. */
  readonly sentBytes: number
  /** Bytes of objects that were already present. */
  readonly presentBytes: number
  /** Number of ranges read back and compared. */
  readonly checkedRanges: number
}

const MAX_TRIES = 10

/**
 * Writes models to a target: files, then the documents that refer to them. Then reads samples of everything back, and
 * updates the index (JSON and HTML) only if they match. Skips objects that are already present; calling it again resumes
 * an interrupted upload. Models published earlier stay in the index, except one of the same name, which is replaced.
 * @throws PublishError; on abort the signal's reason
 */
export async function publish(
  publications: readonly Publication[],
  target: Target,
  options: PublishOptions = {}
): Promise<Published> {
  const { signal } = options
  await readListing(target, signal)
  await requireOwnPage(target, signal)
  // by key: each model has its own copy of a shared file, but a model given twice is written once
  const objects = [...new Map(inOrder(publications).map((object) => [object.key, object])).values()]
  await target.requireRoom(objects)
  const writing = new Meter('writing', objects, options.onProgress)
  let [sentBytes, presentBytes, checkedRanges] = [0, 0, 0]
  for (const object of objects) {
    signal?.throwIfAborted()
    writing.begin(object)
    if (await target.has(object, { signal, onBytes: writing.add })) presentBytes += object.sizeBytes
    else {
      // undoes what a comparison counted
      writing.begin(object)
      await target.put(object, { signal, onBytes: writing.add })
      sentBytes += object.sizeBytes
    }
    writing.end()
  }
  const { url } = options
  const http = new HttpClient()
  const ways: { readonly where: string; readonly read: RangeReader }[] = [
    { where: target.name, read: (...range) => target.readRange(...range) },
    ...(options.checkUrl === true && url !== undefined ? [{ where: url, read: throughUrl(url, http) }] : [])
  ]
  const checking = new Meter('checking', objects, options.onProgress)
  try {
    for (const object of objects) {
      signal?.throwIfAborted()
      checking.begin(object)
      for (const { where, read } of ways) checkedRanges += await checkObject(object, where, read, signal)
      checking.end()
    }
  } finally {
    await http.close()
  }
  await list(publications, target, url, signal)
  return { sentBytes, presentBytes, checkedRanges }
}

/**
 * The base URL for readers of a target: the one given, else the one the target implies, else the one recorded by an
 * earlier publication. Undefined if none is known. @throws PublishError
 */
export async function readerUrl(
  target: Target,
  said: string | undefined,
  signal?: AbortSignal
): Promise<string | undefined> {
  return said ?? target.url ?? (await readListing(target, signal)).listing.url
}

/** All files of all models, then all documents, the `.torrent`s last. */
function inOrder(publications: readonly Publication[]): PublishedObject[] {
  const torrents: PublishedTorrent[] = publications.flatMap((each) => [each, each.companions ?? []].flat())
  const files = torrents.flatMap(({ objects, files: own }) => objects.slice(0, own.length))
  const documents = torrents.map(({ objects, files: own }) => objects.slice(own.length))
  return [...files, ...[0, 1, 2].flatMap((i) => documents.flatMap((each) => each[i] ?? []))]
}

async function readListing(
  target: Target,
  signal: AbortSignal | undefined
): Promise<{ readonly stored: StoredDocument | undefined; readonly listing: Listing }> {
  const stored = await target.readDocument(LISTING_KEY, MAX_LISTING_BYTES, signal)
  return { stored, listing: stored === undefined ? { models: [] } : parseListing(stored.bytes, target.name) }
}

/** Refuses to overwrite a page that svc did not write. */
async function requireOwnPage(target: Target, signal: AbortSignal | undefined): Promise<void> {
  const page = await target.readDocument(PAGE_KEY, MAX_LISTING_BYTES, signal)
  if (page === undefined || Buffer.from(page.bytes).includes(PAGE_MARK)) return
  throw new PublishError(
    'E_BAD_TARGET',
    `${target.name} contains an ${PAGE_KEY} that svc did not write; publish to a separate folder or prefix`
  )
}

async function list(
  publications: readonly Publication[],
  target: Target,
  url: string | undefined,
  signal: AbortSignal | undefined
): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const { stored, listing } = await readListing(target, signal)
    const next = addToListing(listing, publications, url)
    const bytes = listingBytes(next)
    const isSame = stored !== undefined && Buffer.compare(stored.bytes, bytes) === 0
    if (!isSame && !(await target.replaceDocument(document(LISTING_KEY, bytes, 'application/json'), stored, signal)))
      continue
    await writePage(target, bytes, signal)
    return
  }
  throw new PublishError(
    'E_UNAVAILABLE',
    `${LISTING_KEY} of ${target.name} keeps changing while it is updated; try again`
  )
}

/** Renders the page from the index, and again if another publisher has updated the index in the meantime. */
async function writePage(target: Target, listing: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
  for (let bytes = listing, tries = 0; tries < MAX_TRIES; tries++) {
    const page = pageBytes(parseListing(bytes, target.name))
    const stored = await target.readDocument(PAGE_KEY, MAX_LISTING_BYTES, signal)
    if (stored === undefined || Buffer.compare(stored.bytes, page) !== 0)
      await target.put(document(PAGE_KEY, page, 'text/html; charset=utf-8'), { signal })
    const now = await target.readDocument(LISTING_KEY, MAX_LISTING_BYTES, signal)
    if (now === undefined || Buffer.compare(now.bytes, bytes) === 0) return
    bytes = now.bytes
  }
}

const document = (key: string, bytes: Uint8Array, contentType: string) =>
  documentObject(key, bytes, contentType, 'no-cache')

/** Counts bytes and files of one phase, and reports progress. */
class Meter {
  readonly #phase: PublishProgress['phase']
  readonly #tell: PublishOptions['onProgress']
  readonly #bytesTotal: number
  readonly #filesTotal: number
  #bytesDone = 0
  #filesDone = 0
  #current: PublishedObject | undefined
  #currentBytes = 0

  constructor(
    phase: PublishProgress['phase'],
    objects: readonly PublishedObject[],
    tell: PublishOptions['onProgress']
  ) {
    this.#phase = phase
    this.#tell = tell
    this.#filesTotal = objects.length
    this.#bytesTotal = objects.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  }

  readonly add = (bytes: number): void => {
    this.#currentBytes = Math.min(this.#currentBytes + bytes, this.#current?.sizeBytes ?? 0)
    this.#say()
  }

  begin(object: PublishedObject): void {
    this.#current = object
    this.#currentBytes = 0
    this.#say()
  }

  end(): void {
    this.#bytesDone += this.#current?.sizeBytes ?? 0
    this.#filesDone += 1
    this.#current = undefined
    this.#currentBytes = 0
    this.#say()
  }

  #say(): void {
    const { key, sizeBytes } = this.#current ?? {}
    this.#tell?.({
      phase: this.#phase,
      bytesDone: this.#bytesDone + this.#currentBytes,
      bytesTotal: this.#bytesTotal,
      filesDone: this.#filesDone,
      filesTotal: this.#filesTotal,
      ...(key !== undefined && { file: { name: key, bytesDone: this.#currentBytes, bytesTotal: sizeBytes! } })
    })
  }
}
