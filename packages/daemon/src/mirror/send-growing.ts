import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BlobReader } from '@svc/cas'
import { blobAnswerTo, sendBlob } from '../http/blob-response.ts'
import { GrowingBlob } from './growing-blob.ts'
import { orClosed, readerOf, refuseBlob, type SendOptions } from './send-file.ts'

/** Options of sending a file that is not in the store yet. */
export type SendGrowingOptions = Omit<SendOptions, 'store'>

/**
 * Responds to GET or HEAD for a file that may still arrive. `open` is called if the response has a body, with the offset of its first
 * byte; a HEAD, a 304 and a refusal need no bytes.
 * @returns false if `open` has nothing, or it may not be given any longer; nothing was sent then. @throws the errors of `open`
 */
export async function sendGrowing(
  request: IncomingMessage,
  response: ServerResponse,
  { sizeBytes }: { readonly sizeBytes: number },
  open: (start: number) => Promise<BlobReader | undefined>,
  { mayGive, ...options }: SendGrowingOptions
): Promise<boolean> {
  const answer = blobAnswerTo(request, options.etag, sizeBytes)
  const needsBytes = request.method === 'GET' && (answer.status === 200 || answer.status === 206) && sizeBytes > 0
  const reader = needsBytes ? await open(answer.status === 206 ? answer.start : 0) : nothingOf(sizeBytes)
  if (reader === undefined || !(await orClosed(reader, mayGive))) return false
  // A client that has gone waits for nothing. What is being read is closed when that is over.
  const leave = (): void => {
    if (reader instanceof GrowingBlob) reader.abandon()
  }
  response.once('close', leave)
  try {
    await sendBlob(request, response, reader, {
      ...options,
      headFirst: needsBytes,
      refuse: refuseBlob(request, response)
    })
  } finally {
    response.off('close', leave)
  }
  return true
}

const nothingOf = (sizeBytes: number): BlobReader => ({
  ...readerOf(new Uint8Array()),
  sizeBytes,
  read: () => Promise.reject(new Error('there is nothing to be read'))
})
