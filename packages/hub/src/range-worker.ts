import { workerData } from 'node:worker_threads'
import { DialGuard, SharedDownloadLimit } from '@svc/internal-net'
import { serveCalls, yieldToOthers } from '@svc/internal-workers'
import { BlockWriter, WriteFailure } from './block-writer.ts'
import type { PlainHead } from './plain-head.ts'
import { RangeConnection } from './range-connection.ts'
import type { RangeCalls, RangeJob, RangeProgress, RangeReply, RangeThreadData } from './range-protocol.ts'

// The code of a thread of `RangeThreads`: owns its sockets, reads the bodies of ranges into blocks, and writes these.

const { nice, limit } = workerData as RangeThreadData
const downloads = limit && new SharedDownloadLimit(limit)

/** Idle connections, by their target. */
const idle = new Map<string, RangeConnection[]>()

const targetOf = ({ url, policy }: RangeJob): string => `${policy} ${new URL(url).origin}`

function connectionTo(job: RangeJob): RangeConnection {
  const { url, policy, connectMs } = job
  const { protocol, port, hostname } = new URL(url)
  const key = targetOf(job)
  const kept = idle.get(key)?.pop()
  if (kept !== undefined) return kept
  const secure = protocol === 'https:'
  const connection: RangeConnection = new RangeConnection(
    {
      secure,
      host: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(port) || (secure ? 443 : 80),
      lookup: new DialGuard(policy).lookup,
      connectMs,
      downloads
    },
    () => {
      const rest = idle.get(key)?.filter((other) => other !== connection) ?? []
      if (rest.length === 0) idle.delete(key)
      else idle.set(key, rest)
    }
  )
  return connection
}

function keep(job: RangeJob, connection: RangeConnection): void {
  if (connection.isGone) return
  const key = targetOf(job)
  idle.set(key, [...(idle.get(key) ?? []), connection])
}

function requestOf({ url, headers, start, end }: RangeJob): string {
  const { pathname, search, host } = new URL(url)
  const lines = Object.entries({ host, ...headers, range: `bytes=${start}-${end - 1}` })
  return `GET ${pathname}${search} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`
}

async function fetch(
  job: RangeJob,
  signal: AbortSignal,
  progress: (progress: RangeProgress) => void
): Promise<RangeReply> {
  const { fd, writeGate, start, end, sizeBytes, stallMs, slowMs } = job
  const request = requestOf(job)
  for (;;) {
    signal.throwIfAborted()
    const connection = connectionTo(job)
    const reused = connection.wasUsed
    const stop = (): void => connection.destroy(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    let answered = false
    try {
      const onHead = ({ headers, bodyBytes }: PlainHead): BlockWriter => {
        answered = true
        progress({ headers: { ...headers } })
        const target = { fd, start, end: start + bodyBytes, writeGate }
        return new BlockWriter(target, (from, to) => progress({ start: from, end: to }))
      }
      const outcome = await connection.run({ request, start, end, sizeBytes, stallMs, slowMs, onHead })
      keep(job, connection)
      return outcome
    } catch (error) {
      if (error instanceof WriteFailure) return 'unwritable'
      signal.throwIfAborted()
      // the server had closed the idle connection, which says nothing about the range.
      if (reused && !answered) continue
      throw error
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
}

yieldToOthers(nice)
serveCalls<RangeCalls>({ fetch: (job, { signal, progress }) => fetch(job, signal, progress) })
