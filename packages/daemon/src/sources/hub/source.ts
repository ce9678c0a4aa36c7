import type { HashAttachment, PartialBlob } from '@svc/cas'
import { gitBlobSha1HasherUrl, type Hub, type HubFile, type HubListing, type HubSink, type Waiting } from '@svc/hub'
import { DaemonError } from '../../errors.ts'
import type { BlockAttachment, FetchContext, ImportSource, SourceFile } from '../../import/source.ts'
import { hubFailure } from './errors.ts'
import { hubProvenance } from './provenance.ts'
import { HeaderTooLarge, windowOf } from './window.ts'

/** Git's name of the bytes, computed while the store hashes them. */
const GIT_NAME: HashAttachment = { name: 'git-blob-sha1', module: gitBlobSha1HasherUrl }

/** Files fetched concurrently; the hub object limits their requests, over all jobs. */
const CONCURRENCY = 8

export interface HubSourceOptions {
  readonly fetchUnrecognised: boolean
  readonly warnings: readonly string[]
  /** Whether the hub object sends a token. */
  readonly hasToken: boolean
  /** Called at every pause, for the log. */
  readonly onWaiting: (waiting: Waiting, path: string) => void
}

/** A pinned listing of the hub as an import source, which does not close the hub object. */
export function hubSource(hub: Hub, listing: HubListing, options: HubSourceOptions): ImportSource {
  const { repoId, commit } = listing
  const provenance = hubProvenance(listing, { hasToken: options.hasToken })
  return {
    kind: 'hf',
    files: listing.files.map((file) => hubFile(hub, file, options, repoId)),
    annotations: { 'svc.hf.repo': repoId, 'svc.hf.revision': commit },
    fetchUnrecognised: options.fetchUnrecognised,
    concurrency: CONCURRENCY,
    provenance: () => provenance,
    origin: { kind: 'hf', repo: repoId, revision: commit },
    hints: { trackers: [], webseeds: [], peers: [] },
    warnings: options.warnings,
    close: async () => undefined
  }
}

function hubFile(hub: Hub, file: HubFile, options: HubSourceOptions, repoId: string): SourceFile {
  const { path: name, sizeBytes, sha256, gitBlobSha1 } = file
  return {
    name,
    sizeBytes,
    ...(sha256 !== undefined ? { digest: sha256 } : byGitName(name, gitBlobSha1!, repoId)),
    peek: (signal) => {
      const readAt = windowOf(hub, file, signal)
      return async (offset, lengthBytes) => {
        try {
          return await readAt(offset, lengthBytes)
        } catch (error) {
          if (!(error instanceof HeaderTooLarge)) throw hubFailure(error)
          const what = `the header of ${JSON.stringify(name)} is too large to tell its quant before it is fetched`
          throw new DaemonError('E_BAD_REQUEST', `${what}; choose with "files" instead of "quants"`, { cause: error })
        }
      }
    },
    open: async () => ({
      kind: 'remote',
      fetch: (into, context) => fetchFile(hub, file, into, context, options),
      close: async () => undefined
    })
  }
}

/** Small files in git itself have no SHA-256 in the listing. */
const byGitName = (
  name: string,
  gitBlobSha1: string,
  repoId: string
): Pick<SourceFile, 'partialKey' | 'attachments' | 'accept'> => ({
  // what another repository gave must not be taken for this one's
  partialKey: `git-blob-sha1:${gitBlobSha1} ${repoId.toLowerCase()}`,
  attachments: [GIT_NAME],
  accept: ({ attachments }) => {
    const found = Buffer.from(attachments[GIT_NAME.name]!).toString('hex')
    if (found !== gitBlobSha1)
      throw new Error(`${name}: its git blob name is ${found}, the listing says ${gitBlobSha1}`)
  }
})

/** A partial blob as a sink for the hub client, which writes from threads through its descriptor if there is one. */
function sinkOf(partial: PartialBlob, byBlock: BlockAttachment | undefined): HubSink {
  const { sizeBytes, fd } = partial
  return {
    sizeBytes,
    ranges: () => partial.ranges(),
    write: (offset, bytes) => partial.write(offset, bytes),
    unmark: (start, end) => partial.unmark(start, end),
    ...(fd !== undefined && {
      direct: {
        fd,
        ...(byBlock !== undefined && {
          hashing: { module: byBlock.module, options: byBlock.options, blockBytes: byBlock.blocks.blockBytes }
        }),
        markWritten: (start, end, hashes) =>
          partial.markWritten(start, end, byBlock && hashes && { [byBlock.name]: hashes })
      }
    })
  }
}

async function fetchFile(
  hub: Hub,
  file: HubFile,
  into: PartialBlob,
  { signal, onProgress, onWaiting, byBlock }: FetchContext,
  options: HubSourceOptions
): Promise<void> {
  let waits = false
  const goesOn = (): void => {
    if (waits) onWaiting?.(undefined)
    waits = false
  }
  try {
    await hub.download(file, sinkOf(into, byBlock), {
      signal,
      onProgress: (bytesDone) => {
        goesOn()
        onProgress(bytesDone)
      },
      onWaiting: (waiting) => {
        waits = true
        options.onWaiting(waiting, file.path)
        onWaiting?.(`${waiting.message} (${JSON.stringify(file.path)})`)
      }
    })
  } catch (error) {
    throw hubFailure(error)
  } finally {
    goesOn()
  }
}
