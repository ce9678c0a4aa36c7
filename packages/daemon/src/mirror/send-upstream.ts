import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { BlobReader } from '@svc/cas'
import { blobAnswerTo, sendBlob } from '../http/blob-response.ts'
import type { BufferPool } from '../http/buffer-pool.ts'
import { GrowingBlob } from './growing-blob.ts'
import type { OnDemand } from './on-demand.ts'
import { readerOf, refuseBlob } from './send-file.ts'
import type { UpstreamFile, UpstreamRepo } from './upstream.ts'

/** Options of sending a file that is not in the store yet. */
export interface SendUpstreamOptions {
  readonly onDemand: OnDemand
  readonly pool: BufferPool
  readonly headers: OutgoingHttpHeaders
  /** Quoted. */
  readonly etag: string
}

/**
 * Responds to GET or HEAD for an upstream file. A HEAD, and anything else that needs no bytes, fetches nothing. A large
 * file is sent while it arrives. @throws NotNowError
 */
export async function sendUpstream(
  request: IncomingMessage,
  response: ServerResponse,
  repo: UpstreamRepo,
  file: UpstreamFile,
  { onDemand, ...options }: SendUpstreamOptions
): Promise<void> {
  const answer = blobAnswerTo(request, options.etag, file.sizeBytes)
  const needsBytes = request.method === 'GET' && (answer.status === 200 || answer.status === 206) && file.sizeBytes > 0
  const offset = answer.status === 206 ? answer.start : 0
  const reader = !needsBytes
    ? nothingOf(file)
    : file.isLarge
      ? await onDemand.large(repo, file, offset)
      : readerOf(await onDemand.small(repo, file))
  // A client that has gone waits for nothing. What is being read is closed when that is over.
  const leave = (): void => {
    if (reader instanceof GrowingBlob) reader.abandon()
  }
  response.once('close', leave)
  try {
    await sendBlob(request, response, reader, { ...options, refuse: refuseBlob(request, response) })
  } finally {
    response.off('close', leave)
  }
}

const nothingOf = ({ sizeBytes }: UpstreamFile): BlobReader => ({
  ...readerOf(new Uint8Array()),
  sizeBytes,
  read: () => Promise.reject(new Error('there is nothing to be read'))
})
