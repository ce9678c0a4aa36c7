import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { BlobReader } from '@svc/cas'
import { type PumpOptions, pumpBlob } from './blob-pump.ts'
import { blobAnswer, blobETag } from './range.ts'

export interface BlobResponseOptions extends PumpOptions {
  /** Sent with every response, e.g. the hardening headers of a listener that browsers can reach. */
  readonly headers?: OutgoingHttpHeaders
  /** Quoted; default: the digest. Other protocols have other names for the same bytes. */
  readonly etag?: string | undefined
  /** Default: nothing is said about that. */
  readonly modifiedAt?: Date | undefined
  /** Sends a 412 or 416 with these headers and a body. */
  readonly refuse: (status: 412 | 416, headers: OutgoingHttpHeaders) => void
}

/**
 * Responds to GET or HEAD by spec http.13 to http.17. Resolves, with the blob closed, when the response has ended or
 * its connection is gone. A read error in the body closes the connection (the client sees a short body, never wrong
 * bytes) and rejects.
 */
export async function sendBlob(
  request: IncomingMessage,
  response: ServerResponse,
  blob: BlobReader,
  options: BlobResponseOptions
): Promise<void> {
  try {
    const { etag = blobETag(blob.digest), modifiedAt } = options
    const answer = blobAnswer(request, { etag, modifiedAt }, blob.sizeBytes)
    const common: OutgoingHttpHeaders = {
      ...options.headers,
      'Accept-Ranges': 'bytes',
      ETag: etag,
      ...(modifiedAt !== undefined && { 'Last-Modified': modifiedAt.toUTCString() })
    }
    const bytes = { ...common, 'Content-Type': 'application/octet-stream' }
    switch (answer.status) {
      case 412:
        return options.refuse(412, common)
      case 416:
        return options.refuse(416, { ...common, 'Content-Range': `bytes */${blob.sizeBytes}` })
      case 304:
        response.writeHead(304, common)
        response.end()
        return
      case 200:
        response.writeHead(200, { ...bytes, 'Content-Length': blob.sizeBytes })
        if (request.method === 'HEAD' || blob.sizeBytes === 0) response.end()
        else await pumpBlob(response, blob, 0, blob.sizeBytes, options)
        return
      case 206: {
        const { start, end } = answer
        const range = `bytes ${start}-${end - 1}/${blob.sizeBytes}`
        response.writeHead(206, { ...bytes, 'Content-Length': end - start, 'Content-Range': range })
        await pumpBlob(response, blob, start, end, options)
      }
    }
  } finally {
    await blob.close()
  }
}
