import { read as readCallback } from 'node:fs'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { BlobReader } from '@svc/cas'
import { blobAnswer, blobETag } from './range.ts'

/** Bytes per read and write. Measured: 1 MiB is the flat top over a Unix socket (bench/blob-read). */
const CHUNK_BYTES = 1 << 20
const POOLED_BUFFERS = 16

/**
 * Lends the buffers of blob responses. A response holds at most two; buffers beyond the pool's bound are made as needed
 * and dropped afterwards, so that idle memory is bounded and a slow reader never makes another one wait.
 */
export class BufferPool {
  readonly #idle: Buffer[] = []
  readonly #chunkBytes: number

  /** Smaller chunks where strangers decide how many responses there are. */
  constructor(chunkBytes = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes
  }

  take(): Buffer {
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(this.#chunkBytes)
  }

  give(buffer: Buffer): void {
    if (this.#idle.length < POOLED_BUFFERS && buffer.length === this.#chunkBytes) this.#idle.push(buffer)
  }
}

/** A reader must take a chunk within this time: a floor of about 9 KB/s, far below any honest one. */
const SLOW_READER_TIMEOUT_MS = 120_000

/** Bytes that may go out over time, shared with others that send (a token bucket). */
export interface SendBudget {
  /** Milliseconds until something may be sent; 0: now. */
  waitMs(nowMs: number): number
  spend(bytes: number): void
}

/** What goes out at once under a budget. */
const BUDGET_CHUNK_BYTES = 64 << 10

export interface BlobResponseOptions {
  /** Absent: as fast as the reader takes it. */
  readonly budget?: SendBudget | undefined
  readonly pool: BufferPool
  readonly slowReaderTimeoutMs?: number
  /** Sent with every answer, e.g. the hardening headers of a listener that browsers can reach. */
  readonly headers?: OutgoingHttpHeaders
  /** Writes the body of 412 and 416; the status line and headers are this function's to send too. */
  readonly refuse: (status: 412 | 416, headers: OutgoingHttpHeaders) => void
}

/**
 * Answers GET or HEAD for an open blob by spec http.13 to http.17, and closes it in every case. Resolves when the response
 * is finished or its connection is gone; the descriptor is released at once in both cases. A read error in mid-body cuts the
 * connection (the client sees a short body, never wrong bytes) and rejects.
 */
export async function sendBlob(
  request: IncomingMessage,
  response: ServerResponse,
  blob: BlobReader,
  options: BlobResponseOptions
): Promise<void> {
  try {
    const etag = blobETag(blob.digest)
    const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
    const { headers } = request
    const answer = blobAnswer(
      method,
      {
        ifMatch: headers['if-match'],
        ifNoneMatch: headers['if-none-match'],
        ifRange: headers['if-range'] as string | undefined,
        range: headers.range
      },
      etag,
      blob.sizeBytes
    )
    const common: OutgoingHttpHeaders = { ...options.headers, 'Accept-Ranges': 'bytes', ETag: etag }
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
        response.writeHead(200, {
          ...common,
          'Content-Type': 'application/octet-stream',
          'Content-Length': blob.sizeBytes
        })
        if (method === 'HEAD' || blob.sizeBytes === 0) response.end()
        else await pump(response, blob, 0, blob.sizeBytes, options)
        return
      case 206:
        response.writeHead(206, {
          ...common,
          'Content-Type': 'application/octet-stream',
          'Content-Length': answer.end - answer.start,
          'Content-Range': `bytes ${answer.start}-${answer.end - 1}/${blob.sizeBytes}`
        })
        await pump(response, blob, answer.start, answer.end, options)
    }
  } finally {
    await blob.close()
  }
}

/**
 * Two buffers: one is being written to the socket while the next is read. `res.write`'s callback says that the kernel took
 * the bytes, and only then is a buffer used again.
 */
function pump(
  response: ServerResponse,
  blob: BlobReader,
  start: number,
  end: number,
  { pool, budget, slowReaderTimeoutMs = SLOW_READER_TIMEOUT_MS }: BlobResponseOptions
): Promise<void> {
  return new Promise((resolve, reject) => {
    const free: Buffer[] = []
    let made = 0
    let offset = start
    let reading = false
    let writing = 0
    let gone = false
    let settled = false
    let ended = false
    let pause: NodeJS.Timeout | undefined
    const slow = setTimeout(() => response.destroy(), slowReaderTimeoutMs)

    const settle = (error?: Error): void => {
      if (settled) return
      settled = true
      clearTimeout(slow)
      clearTimeout(pause)
      response.off('close', onClose)
      for (const buffer of free) pool.give(buffer)
      if (error !== undefined) {
        response.destroy()
        reject(error)
      } else resolve()
    }
    // The caller closes the descriptor as soon as this settles, so a read under way is awaited (its number could be reused).
    // A buffer under an abandoned write is left to the garbage collector.
    const onClose = (): void => {
      gone = true
      if (!reading) settle()
    }

    const onRead = (buffer: Buffer, error: Error | null, count: number): void => {
      reading = false
      if (gone) return settle()
      if (error !== null) return settle(error)
      if (count === 0) return settle(new Error(`the file of ${blob.digest} is shorter than its size`))
      offset += count
      writing++
      response.write(count === buffer.length ? buffer : buffer.subarray(0, count), (failure) => {
        writing--
        slow.refresh()
        // on a failure the 'close' event follows
        if (settled || failure) return
        free.push(buffer)
        next()
      })
      next()
    }

    const next = (): void => {
      if (settled || reading || gone || pause !== undefined) return
      if (offset >= end) {
        if (writing === 0 && !ended) {
          ended = true
          response.end(() => settle())
        }
        return
      }
      const waitMs = budget?.waitMs(performance.now()) ?? 0
      if (waitMs > 0) {
        pause = setTimeout(
          () => {
            pause = undefined
            // the reader is not to blame for this wait
            slow.refresh()
            next()
          },
          Math.min(waitMs, slowReaderTimeoutMs / 2)
        )
        return
      }
      let buffer = free.pop()
      if (buffer === undefined) {
        if (made === 2) return
        made++
        buffer = pool.take()
      }
      reading = true
      const length = Math.min(buffer.length, end - offset, budget === undefined ? buffer.length : BUDGET_CHUNK_BYTES)
      budget?.spend(length)
      const target = buffer
      if (blob.fd !== undefined) {
        readCallback(blob.fd, target, 0, length, offset, (error, count) => onRead(target, error, count))
      } else {
        blob.read(target.subarray(0, length), offset).then(
          (count) => onRead(target, null, count),
          (error: Error) => onRead(target, error, 0)
        )
      }
    }

    if (response.destroyed || response.closed) return settle()
    response.once('close', onClose)
    next()
  })
}
