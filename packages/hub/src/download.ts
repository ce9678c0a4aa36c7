import type { Gate } from '@svc/internal-concurrency'
import { download, ForgetfulSinkError, type Paces, type RetryWait } from '@svc/internal-http'
import { HubError } from './errors.ts'
import { HubFileSource } from './file-source.ts'
import type { Net } from './net.ts'
import type { HubSink } from './sink.ts'
import type { HubFile } from './tree.ts'

/** How to fetch one file. An abort rejects with the signal's reason, and the sink keeps what it has. */
export interface DownloadOptions {
  readonly signal?: AbortSignal
  /** Called with the total of bytes in the sink, not a delta. */
  readonly onProgress?: (bytesDone: number) => void
  readonly onWaiting?: (waiting: RetryWait) => void
  /** Files with a lower number go first, files without one last. Called before each request. */
  readonly rank?: () => number | undefined
}

/** What the downloads of one hub object share: places for the requests of large files, of small ones, and at each host. */
export interface RequestGates {
  readonly large: Gate
  readonly small: Gate
  readonly paces: Paces
}

/** Small files do not queue behind large ones, only behind those that somebody waits for. */
const SMALL_RANK = Number.MAX_SAFE_INTEGER

/** Fetches what `sink` lacks of `[start, end)`. Errors: see `Hub.download`. */
export async function downloadRange(
  { net, lanes }: { readonly net: Net; readonly lanes: RequestGates },
  file: HubFile,
  sink: HubSink,
  span: { readonly start: number; readonly end: number },
  options: DownloadOptions
): Promise<void> {
  const { sizeBytes, path } = file
  if (sink.sizeBytes !== sizeBytes)
    throw new TypeError(`the sink holds ${sink.sizeBytes} bytes, "${path}" has ${sizeBytes}`)
  const { rangeBytes, rangesPerFile, writeBytes, smallFileBytes } = net.limits
  const isSmall = sizeBytes <= smallFileBytes
  const lane = isSmall ? lanes.small : lanes.large
  const rank = isSmall ? () => options.rank?.() ?? SMALL_RANK : options.rank
  const { paces } = lanes
  const settings = {
    ...options,
    rank,
    paces,
    timings: net.timings,
    rangeBytes,
    parallel: rangesPerFile,
    writeBytes,
    lane
  }
  try {
    await download(new HubFileSource(net, file, sink.direct), sink, settings, span)
  } catch (error) {
    if (!(error instanceof ForgetfulSinkError)) throw error
    throw new HubError('E_INTERNAL', 'sink', `the sink lost bytes of "${path}" that were written to it`, { path })
  }
}
