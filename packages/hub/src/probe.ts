import { Backoff, type DownloadError, type RetryWait } from '@svc/internal-http'
import { resolveUrl } from './endpoint.ts'
import type { HubError } from './errors.ts'
import type { Net } from './net.ts'
import { statusFailure } from './outcome.ts'
import type { HubFile } from './tree.ts'

/** Options of a probe. `onWaiting` is called before each wait for a rate limit or a retry. */
export interface ProbeOptions {
  readonly signal?: AbortSignal
  /** Longest total wait for a rate limit; default: that of the hub object. */
  readonly maxRateWaitMs?: number
  readonly onWaiting?: (waiting: RetryWait) => void
}

/** Whether a file may be read: requests one byte of it. Errors: see `Hub.probe`. */
export async function probeFile(net: Net, file: HubFile, options: ProbeOptions): Promise<void> {
  const { signal, maxRateWaitMs = net.timings.maxRateWaitMs, onWaiting } = options
  const backoff = new Backoff({ ...net.timings, maxRateWaitMs }, onWaiting)
  for (;;) {
    const failure = await askOnce(net, file, signal)
    if (failure?.error.code === 'E_SOURCE_FORBIDDEN') throw failure.error
    // other failures are left to the download, which retries as often as it should.
    if (failure?.kind !== 'wait') return
    await backoff.after(failure, signal)
  }
}

/** The hub's own answer, before it sends the file or redirects to its storage. */
async function askOnce(
  net: Net,
  file: HubFile,
  signal: AbortSignal | undefined
): Promise<DownloadError<HubError> | undefined> {
  const { endpoint } = net
  const answered = new Error('answered')
  let failure: DownloadError<HubError> | undefined
  try {
    await net.walk({
      url: new URL(resolveUrl(endpoint, file.repoId, file.commit, file.path)),
      signal,
      headers: { range: 'bytes=0-0' },
      onHop: (response) => {
        const { url, status } = response
        if (url.origin === endpoint.origin && status >= 400) failure = statusFailure(response, net.about(file))
        throw answered
      }
    })
  } catch {
    signal?.throwIfAborted()
  }
  return failure
}
