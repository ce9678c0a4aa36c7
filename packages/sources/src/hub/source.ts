import { hash } from 'node:crypto'
import type { DownloadOptions, Hub, HubFile, HubListing, HubSink, OlderVersion, RetryWait } from '@svc/hub'
import type { Clock } from '@svc/internal-clock'
import { Lazy } from '@svc/internal-concurrency'
import {
  type FetchContext,
  type FetchTarget,
  type ImportSource,
  LibraryError,
  type RemoteFile,
  type Reuse
} from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import { LRUCache } from 'lru-cache'
import { hubFailure } from './errors.ts'
import { GIT_NAME, gitNameIn } from './listed-bytes.ts'
import type { HeldVersion, OlderVersions } from './older.ts'
import { hubProvenance } from './provenance.ts'
import { HeaderTooLarge, windowOf } from './window.ts'

/** A cancelled import need not fetch a finished file again while its key, of some hundred bytes, is among the latest. */
export const MAX_STRANGER_FILES = 20_000

/** Files fetched concurrently; the hub object limits their requests, over all jobs. */
const CONCURRENCY = 8

export interface ListedSourceOptions {
  /** The repository in the request. */
  readonly asked: string
  readonly fetchUnrecognized: boolean
  readonly warnings: readonly string[]
  /** Whether the hub object sends a token. */
  readonly hasToken: boolean
  readonly clock: Clock
  /** The branch that the hub said to be at this commit, and when: RFC 3339. */
  readonly branch?: { readonly name: string; readonly at: string } | undefined
  readonly follows?: ImportSource['follows']
  /** For an import that a stranger caused: the files it may take from the store, and those it has brought. */
  readonly strangers?: StrangerBytes | undefined
  /** The store's files of earlier commits. */
  readonly older?: OlderVersions | undefined
  /** Called at every pause, for the log. */
  readonly onWaiting: (waiting: RetryWait, path: string) => void
  /** Called when an older version did not help as it should. */
  readonly onUnused: (error: Error, path: string) => void
}

interface FileOptions extends ListedSourceOptions {
  readonly isRestricted: boolean
}

/**
 * The bytes that the hub has given to strangers: an import that one of them caused takes nothing else from the store,
 * since a listing may name any digest, also that of a private file (spec add.40).
 */
export class StrangerBytes {
  readonly #keys = new LRUCache<string, true>({ max: MAX_STRANGER_FILES })

  has(file: HubFile): boolean {
    return this.#keys.has(strangerKey(file))
  }

  add(file: HubFile): void {
    this.#keys.set(strangerKey(file), true)
  }
}

/** Never the owner's partial, which a stranger's import would have to wait for, nor another repository's. */
export function strangerKey({ repoId, sha256, gitBlobSha1 }: HubFile): string {
  return `stranger:${shortOf(repoId)} ${sha256 ?? `git-blob-sha1:${gitBlobSha1}`}`
}

/** For keys, which have a limit: names of repositories may have hundreds of characters. */
const shortOf = (repoId: string): string => hash('sha256', repoId.toLowerCase()).slice(0, 16)

/** A pinned listing of the hub as an import source, which does not close the hub object. */
export function listedSource(hub: Hub, listing: HubListing, options: ListedSourceOptions): ImportSource {
  const { repoId, commit } = listing
  const provenance = hubProvenance(listing, options)
  return {
    kind: 'hf',
    files: listing.files.map((file) => hubFile(hub, file, { ...options, isRestricted: listing.restricted })),
    annotations: { 'svc.hf.repo': repoId, 'svc.hf.revision': commit },
    fetchUnrecognized: options.fetchUnrecognized,
    concurrency: CONCURRENCY,
    provenance: () => provenance,
    origin: {
      kind: 'hf',
      repo: repoId,
      ...(options.asked.toLowerCase() !== repoId.toLowerCase() && { asked: options.asked }),
      revision: commit,
      ...(options.branch !== undefined && { branch: options.branch.name, branchAt: options.branch.at }),
      ...(options.strangers !== undefined && { onDemand: true })
    },
    follows: options.follows,
    leftOut: listing.leftOut,
    warnings: options.warnings,
    close: async () => undefined
  }
}

function hubFile(hub: Hub, file: HubFile, options: FileOptions): RemoteFile {
  const { path: name, sizeBytes, sha256, gitBlobSha1, repoId } = file
  return {
    name,
    sizeBytes,
    ...(sha256 === undefined
      ? byGitName(name, gitBlobSha1!, options.strangers ? strangerKey(file) : ownKey(repoId, gitBlobSha1!))
      : options.strangers === undefined
        ? { digest: sha256 }
        : options.strangers.has(file)
          ? { digest: sha256, stored: { isSeen: true } }
          : anew(file, sha256, options.strangers)),
    peek: (signal) => {
      const readAt = windowOf(hub, file, signal)
      return async (offset, lengthBytes) => {
        try {
          return await readAt(offset, lengthBytes)
        } catch (error) {
          if (!(error instanceof HeaderTooLarge)) throw hubFailure(error)
          const what = `the header of ${JSON.stringify(name)} is too large to tell its quant before it is fetched`
          throw new LibraryError('E_INVALID', `${what}; choose with "files" instead of "quants"`, { cause: error })
        }
      }
    },
    fetch: (into, context) => fetchFile(hub, file, into, context, options)
  }
}

/** Bytes from another repository must not count as this one's. */
const ownKey = (repoId: string, gitBlobSha1: string): string => `git-blob-sha1:${gitBlobSha1} ${shortOf(repoId)}`

/** Small files in git itself have no SHA-256 in the listing. */
const byGitName = (
  name: string,
  gitBlobSha1: string,
  partialKey: string
): Pick<RemoteFile, 'partialKey' | 'attachments' | 'accept'> => ({
  partialKey,
  attachments: [GIT_NAME],
  accept: (result) => {
    const found = gitNameIn(result)
    if (found !== gitBlobSha1)
      throw new Error(`${name}: its git blob name is ${found}, the listing says ${gitBlobSha1}`)
  }
})

/** Without its digest the pipeline does not look into the store: the hub must serve these bytes without a token first. */
const anew = (file: HubFile, sha256: Sha256Digest, strangers: StrangerBytes): Partial<RemoteFile> => ({
  partialKey: strangerKey(file),
  readAs: sha256,
  accept: ({ digest }) => {
    if (digest !== sha256) throw new Error(`${file.path}: its SHA-256 is ${digest}, the listing says ${sha256}`)
    strangers.add(file)
  }
})

/** A partial blob as a sink for the hub client, which writes from threads through its descriptor if there is one. */
function sinkOf(partial: FetchTarget): HubSink {
  const { sizeBytes, fd, writeGate } = partial
  return {
    sizeBytes,
    ranges: () => partial.ranges(),
    write: (offset, bytes) => partial.write(offset, bytes),
    unmark: (start, end) => partial.unmark(start, end),
    ...(fd !== undefined &&
      writeGate !== undefined && {
        direct: { fd, writeGate, markWritten: (start, end) => void partial.markWritten(start, end) }
      })
  }
}

async function fetchFile(
  hub: Hub,
  file: HubFile,
  into: FetchTarget,
  context: FetchContext,
  options: FileOptions
): Promise<void> {
  const { signal, onProgress, onWaiting, rank } = context
  let waits = false
  const goesOn = (): void => {
    if (waits) onWaiting(undefined)
    waits = false
  }
  const sink = sinkOf(into)
  const reported: DownloadOptions = {
    signal,
    rank,
    onProgress: (bytesDone) => {
      goesOn()
      onProgress(bytesDone)
    },
    onWaiting: (waiting) => {
      waits = true
      options.onWaiting(waiting, file.path)
      onWaiting(`${waiting.message} (${JSON.stringify(file.path)})`)
    }
  }
  try {
    if (context.reuse && options.older)
      await reuseOlder(hub, file, sink, context.reuse, options.older, reported, options)
    await hub.download(file, sink, reported)
  } catch (error) {
    throw hubFailure(error)
  } finally {
    goesOn()
  }
}

/** Copies unchanged bytes from an older version of a file. The blob is opened, and its origin noted, before the first byte is copied. */
async function reuseOlder(
  hub: Hub,
  file: HubFile,
  sink: HubSink,
  reuse: Reuse,
  older: OlderVersions,
  reported: DownloadOptions,
  { isRestricted, onUnused }: FileOptions
): Promise<void> {
  let held: HeldVersion | undefined
  const find = async (): Promise<OlderVersion | undefined> => {
    held = await older.of(file, reported.signal)
    if (held === undefined) return undefined
    const { file: listed, reader } = held
    const noted = new Lazy(() => reuse.begin(reader.digest, { isRestricted }))
    const read: OlderVersion['read'] = async (target, offset) => {
      await noted.get()
      return reader.read(target, offset)
    }
    return { file: listed, read }
  }
  try {
    const { copiedBytes, failure } = await hub.reuse(file, find, sink, reported)
    reuse.took(copiedBytes)
    if (failure !== undefined) onUnused(failure, file.path)
  } finally {
    await held?.reader.close()
  }
}
