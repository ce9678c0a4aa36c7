import type { Backoff } from '@svc/internal-http'
import { type BlobContent, checkContent, contentOfBytes, readContent } from './content.ts'
import type { OciDocument } from './document.ts'
import { OciError } from './errors.ts'
import type { PackedImage } from './pack.ts'
import type { Repository } from './registry.ts'
import { backoffOf, failedAttempt, type RetryOptions } from './retry.ts'

/** Options of {@link pushImage}. */
export interface PushOptions extends RetryOptions {
  /** A repository of the same registry that may have the blobs; they are mounted from there instead of sent. */
  readonly mountFrom?: string | undefined
  /** Called with the bytes of each step; a blob that is already there counts as a whole. */
  readonly onBytes?: ((bytes: number) => void) | undefined
}

/** The result of a push. */
export interface Pushed {
  readonly digest: string
  readonly sentBytes: number
  /** Bytes that the registry already had, or mounted. */
  readonly presentBytes: number
}

/**
 * Registries that keep uploads in object storage allow at most 10,000 chunks per blob, so the chunk size grows with the
 * blob.
 */
const MIN_CHUNK_BYTES = 64 << 20
const MAX_CHUNKS = 5_000

/**
 * Pushes an image: its blobs, then the manifest under the tag. Blobs that the registry has are not sent; an interrupted
 * transfer resumes at the offset that the registry reports. Nothing is visible under the tag until all of it is there.
 * @throws OciError `E_DENIED`, `E_RATE_LIMITED`, `E_UNAVAILABLE`, `E_DIGEST_MISMATCH`, `E_CREDENTIALS`; errors of the
 *   file system as they are; on abort the signal's reason
 */
export async function pushImage(
  repository: Repository,
  tag: string,
  image: PackedImage,
  options: PushOptions = {}
): Promise<Pushed> {
  let sentBytes = 0
  let presentBytes = 0
  const { layers, config } = image
  const contents = [...layers.map(({ content }) => content), contentOfBytes(config.bytes, config.digest)]
  for (const content of new Map(contents.map((each) => [each.digest, each])).values()) {
    options.signal?.throwIfAborted()
    if (await pushBlob(repository, content, options)) sentBytes += content.sizeBytes
    else presentBytes += content.sizeBytes
  }
  await pushManifest(repository, tag, image.manifest, options)
  return { digest: image.manifest.digest, sentBytes, presentBytes }
}

async function pushManifest(
  repository: Repository,
  tag: string,
  { bytes, mediaType }: OciDocument,
  options: PushOptions
): Promise<void> {
  const { signal } = options
  const target = `manifests/${tag}`
  const headers = { 'content-type': mediaType }
  await retrying(backoffOf(options), signal, async () => {
    const call = { method: 'PUT', target, headers, body: () => bytes, scope: 'push', signal } as const
    const answer = await repository.expect(call, `the manifest of ${tag}`, 201)
    await answer.discard()
  })
}

async function retrying<T>(backoff: Backoff, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work()
    } catch (failure) {
      await backoff.after(failedAttempt(failure), signal)
    }
  }
}

/** @returns whether the blob was sent */
async function pushBlob(repository: Repository, content: BlobContent, options: PushOptions): Promise<boolean> {
  const { digest, sizeBytes } = content
  const { signal, onBytes, mountFrom } = options
  const backoff = backoffOf(options)
  let furthest = 0
  // only bytes beyond the furthest offset so far count as progress; otherwise an upload that is refused at its end
  // would restart for ever
  const reached = (bytesDone: number): void => {
    if (bytesDone <= furthest) return
    furthest = bytesDone
    backoff.progress()
  }
  return retrying(backoff, signal, async () => {
    const upload = (await isThere(repository, digest, signal))
      ? undefined
      : await start(repository, digest, mountFrom, signal)
    if (upload === undefined) onBytes?.(sizeBytes)
    else await send(repository, content, upload, { backoff, reached }, options)
    return upload !== undefined
  })
}

async function isThere(repository: Repository, digest: string, signal: AbortSignal | undefined): Promise<boolean> {
  const call = { method: 'HEAD', target: `blobs/${digest}`, scope: 'push', signal } as const
  // a redirect means that the blob exists
  const answer = await repository.expect(call, `the blob ${digest}`, 200, 301, 302, 303, 307, 308, 404)
  await answer.discard()
  return answer.status !== 404
}

interface BlobUpload {
  readonly location: URL
  /** Smallest chunk that the registry accepts, except for the last one. */
  readonly minChunkBytes: number
}

/** @returns the upload's location; undefined when the blob was mounted. */
async function start(
  repository: Repository,
  digest: string,
  mountFrom: string | undefined,
  signal: AbortSignal | undefined
): Promise<BlobUpload | undefined> {
  const mount = mountFrom === undefined ? '' : `?${new URLSearchParams({ mount: digest, from: mountFrom })}`
  const target = `blobs/uploads/${mount}`
  const call = { method: 'POST', target, headers: { 'content-length': '0' }, scope: 'push', signal } as const
  const answer = await repository.expect(call, 'a new upload', 201, 202)
  await answer.discard()
  if (answer.status === 201) return undefined
  const wanted = Number(answer.header('oci-chunk-min-length') ?? 0)
  return {
    location: locationOf(repository, answer.header('location')),
    minChunkBytes: Number.isSafeInteger(wanted) ? wanted : 0
  }
}

interface Tries {
  readonly backoff: Backoff
  readonly reached: (bytesDone: number) => void
}

/**
 * Sends all chunks and completes the upload. When a chunk fails, asks the registry for the offset and resumes there.
 */
async function send(
  repository: Repository,
  content: BlobContent,
  { location: first, minChunkBytes }: BlobUpload,
  { backoff, reached }: Tries,
  { signal, onBytes }: PushOptions
): Promise<void> {
  const { digest, sizeBytes } = content
  const chunkBytes = Math.max(MIN_CHUNK_BYTES, minChunkBytes, Math.ceil(sizeBytes / MAX_CHUNKS))
  let location = first
  for (let at = 0; at < sizeBytes; ) {
    const end = Math.min(at + chunkBytes, sizeBytes)
    try {
      const headers = {
        'content-type': 'application/octet-stream',
        'content-length': `${end - at}`,
        'content-range': `${at}-${end - 1}`
      }
      const body = () => slice(content, at, end)
      const call = { method: 'PATCH', target: location, headers, body, scope: 'push', signal } as const
      const answer = await repository.expect(call, `an upload of ${digest}`, 202)
      await answer.discard()
      location = locationOf(repository, answer.header('location'))
      onBytes?.(end - at)
      at = end
      reached(at)
    } catch (failure) {
      if (isForgotten(failure)) throw forgotten(failure)
      await backoff.after(failedAttempt(failure), signal)
      const found = await whereIs(repository, location, signal)
      location = found.location
      if (found.done > at) onBytes?.(found.done - at)
      at = Math.min(found.done, sizeBytes)
      reached(at)
    }
  }
  // the location's query is kept unchanged: it may be signed
  const last = new URL(location)
  last.search = `${last.search}${last.search === '' ? '?' : '&'}digest=${encodeURIComponent(digest)}`
  const answer = await repository.call({
    method: 'PUT',
    target: last,
    headers: { 'content-length': '0' },
    scope: 'push',
    signal
  })
  if (answer.status !== 201) {
    const failure = await repository.failure(answer, `the end of an upload of ${digest}`)
    if (isForgotten(failure)) throw forgotten(failure)
    // if our own bytes are damaged, the registry was right: report that
    await checkContent(content, signal)
    throw failure
  }
  await answer.discard()
}

const isForgotten = (failure: unknown): boolean => failure instanceof OciError && failure.code === 'E_NOT_FOUND'
const forgotten = (cause?: unknown): OciError => new OciError('E_UNAVAILABLE', 'the registry lost an upload', {}, cause)

/** Asks how far an upload came. An upload that the registry no longer knows has to start over. */
async function whereIs(
  repository: Repository,
  upload: URL,
  signal: AbortSignal | undefined
): Promise<{ readonly location: URL; readonly done: number }> {
  const answer = await repository.call({ method: 'GET', target: upload, scope: 'push', signal })
  await answer.discard()
  if (answer.status !== 204) throw forgotten()
  const range = /^(?:bytes=)?0-(\d{1,16})$/.exec(answer.header('range') ?? '')
  const location = answer.header('location')
  return {
    location: location === undefined ? upload : locationOf(repository, location),
    // registries report 0-0 also for an upload without a byte
    done: range === null || range[1] === '0' ? 0 : Number(range[1]) + 1
  }
}

async function* slice(content: BlobContent, start: number, end: number): AsyncGenerator<Uint8Array, void, void> {
  let left = end - start
  for await (const chunk of readContent(content, start)) {
    const part = chunk.subarray(0, left)
    left -= part.length
    // copied, since the request may still hold this chunk while the next one is read into the same buffer
    yield Uint8Array.from(part)
    if (left === 0) return
  }
}

function locationOf(repository: Repository, text: string | undefined): URL {
  const url = URL.parse(text ?? '', repository.base.href)
  const isPlain = url !== null && ['http:', 'https:'].includes(url.protocol) && url.username + url.password === ''
  if (text !== undefined && isPlain && !(repository.base.protocol === 'https:' && url.protocol === 'http:')) return url
  throw new OciError('E_UNAVAILABLE', 'the registry named no upload address')
}
