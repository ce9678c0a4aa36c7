import { resolveUrl } from './endpoint.ts'
import type { Net } from './net.ts'
import { statusTrouble } from './outcome.ts'
import { Retry, type Waiting } from './retry.ts'
import type { HubFile } from './tree.ts'
import type { Trouble } from './trouble.ts'

/** Options of a probe. `onWaiting` is called before each wait for a rate limit or a retry. */
export interface ProbeOptions {
  readonly signal?: AbortSignal
  /** Longest total wait for a rate limit; default: that of the hub object. */
  readonly maxRateWaitMs?: number
  readonly onWaiting?: (waiting: Waiting) => void
}

/** Whether a file may be read: requests one byte of it. Errors: see `Hub.probe`. */
export async function probeFile(net: Net, file: HubFile, options: ProbeOptions): Promise<void> {
  const { signal, maxRateWaitMs = net.timings.maxRateWaitMs, onWaiting } = options
  const retry = new Retry({ ...net.timings, maxRateWaitMs }, onWaiting)
  for (;;) {
    const trouble = await askOnce(net, file, signal)
    if (trouble?.error.code === 'E_SOURCE_FORBIDDEN') throw trouble.error
    // Other failures are left to the download, which retries as often as it should.
    if (trouble?.kind !== 'wait') return
    await retry.after(trouble, signal)
  }
}

/** The hub's own answer, before it sends the file or redirects to its storage. */
async function askOnce(net: Net, file: HubFile, signal: AbortSignal | undefined): Promise<Trouble | undefined> {
  const { endpoint, hasToken, tokenName, timings } = net
  const context = { ...file, endpoint, hasToken, tokenName, revision: file.commit, nowMs: timings.now() }
  const answered = new Error('answered')
  let trouble: Trouble | undefined
  try {
    await net.walk({
      url: new URL(resolveUrl(endpoint, file.repoId, file.commit, file.path)),
      signal,
      headers: { range: 'bytes=0-0' },
      onHop: (head, at) => {
        if (at.origin === endpoint.origin && head.status >= 400) trouble = statusTrouble(head, at, context)
        throw answered
      },
      onAnswer: () => undefined
    })
  } catch {
    signal?.throwIfAborted()
  }
  return trouble
}
