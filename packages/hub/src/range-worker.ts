import { workerData } from 'node:worker_threads'
import { BodyRangeError, bodyRange, HttpClient } from '@svc/internal-http'
import { serveCalls, yieldToOthers } from '@svc/internal-workers'
import type { RangeCalls, RangeJob, RangeProgress, RangeReply, RangeThreadData } from './range-protocol.ts'
import { RangeWriter, WriteFailure } from './range-writer.ts'

// The code of a thread of `RangeThreads`: it has its own connections, and writes the bodies of ranges.

const { nice, client: options } = workerData as RangeThreadData
const client = new HttpClient(options)

async function fetch(
  { url, headers, policy, start, end, sizeBytes, fd, writeGate }: RangeJob,
  signal: AbortSignal,
  progress: (progress: RangeProgress) => void
): Promise<RangeReply> {
  const range = `bytes=${start}-${end - 1}`
  const response = await client.send({ url: new URL(url), headers: { ...headers, range }, policy, signal })
  let writer: RangeWriter | undefined
  try {
    if (response.status !== 206) return 'other'
    const body = bodyRange(response, { start, end }, sizeBytes)
    progress({ headers: response.headers })
    writer = new RangeWriter({ fd, ...body, writeGate }, (from, to) => progress({ start: from, end: to }))
    for await (const chunk of response) {
      if (chunk.length > writer.leftBytes) throw new Error('the body is longer than its header says')
      const room = writer.room()
      if (room !== undefined) await room
      writer.take(chunk)
    }
    if (writer.leftBytes > 0) throw new Error('the body ended early')
    writer.end()
    return 'done'
  } catch (error) {
    if (error instanceof BodyRangeError) return 'other'
    if (error instanceof WriteFailure) return 'unwritable'
    // What has arrived is kept: the next attempt continues after it.
    writer?.end()
    throw error
  } finally {
    response.destroy()
  }
}

yieldToOthers(nice)
serveCalls<RangeCalls>({ fetch: (job, { signal, progress }) => fetch(job, signal, progress) })
