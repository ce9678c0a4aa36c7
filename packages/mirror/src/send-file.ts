import { open } from 'node:fs/promises'
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { BlobReader } from '@svc/cas'
import { type BufferPool, blobAnswer, refuse, sendBlob } from '@svc/internal-server'
import { digestFromBytes } from '@svc/ref'
import type { WaitingClient } from './demand.ts'
import type { ServedFile } from './served-files.ts'
import type { ServedStore } from './served-store.ts'

const UNNAMED = digestFromBytes(new Uint8Array(32))

export interface SendOptions {
  readonly store: ServedStore
  readonly pool: BufferPool
  readonly headers: OutgoingHttpHeaders
  /** Quoted. */
  readonly etag: string
  readonly modifiedAt?: Date
  /** Default: the error envelope. */
  readonly refuse?: typeof refuse
  /** Asked last, right before the head is sent. */
  readonly mayGive: () => Promise<boolean>
}

/**
 * Responds to GET or HEAD for a file, including ranges and conditions. @returns false, without sending anything, if the
 * file is gone or may no longer be given
 */
export async function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: ServedFile,
  { store, mayGive, refuse: refuseHere = refuse, ...options }: SendOptions
): Promise<boolean> {
  const reader = await (file.isBlob ? store.open(file.digest) : openUnpacked(file)).catch(
    (error: { code?: unknown }) => {
      if (error.code === 'E_NOT_FOUND' || error.code === 'ENOENT') return undefined
      throw error
    }
  )
  if (reader === undefined) return false
  if (!(await orClosed(reader, mayGive))) return false
  await sendBlob(request, response, reader, { ...options, refuse: refuseBlob(response, refuseHere) })
  return true
}

/**
 * Responds to GET or HEAD for a file that is not here yet. `open` is called with the offset of the first byte if the
 * response has a body. @returns as {@link sendFile}; also false if `open` returns undefined. @throws the errors of `open`
 */
export async function sendArriving(
  request: IncomingMessage,
  response: ServerResponse,
  { sizeBytes }: { readonly sizeBytes: number },
  open: (start: number) => Promise<BlobReader | undefined>,
  { mayGive, refuse: refuseHere = refuse, ...options }: Omit<SendOptions, 'store'>
): Promise<boolean> {
  const answer = blobAnswer(request, options, sizeBytes)
  const needsBytes = request.method === 'GET' && (answer.status === 200 || answer.status === 206) && sizeBytes > 0
  const reader = needsBytes
    ? await open(answer.status === 206 ? answer.start : 0)
    : { ...readerOf(new Uint8Array()), sizeBytes }
  if (reader === undefined || !(await orClosed(reader, mayGive))) return false
  const refuseWith = refuseBlob(response, refuseHere)
  // without a descriptor, the first bytes may be slow to arrive
  await sendBlob(request, response, reader, { ...options, headFirst: reader.fd === undefined, refuse: refuseWith })
  return true
}

export function clientOf({ socket }: IncomingMessage, response: ServerResponse): WaitingClient {
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  return {
    host: socket.remoteAddress ?? '',
    gone: gone.signal,
    sendsNoMore: () => socket.readableEnded,
    cut: () => response.destroy()
  }
}

/** Whether a reader's bytes may be given now; if not, it is closed. */
async function orClosed(reader: BlobReader, mayGive: SendOptions['mayGive']): Promise<boolean> {
  let mayBe = false
  try {
    mayBe = await mayGive()
    return mayBe
  } finally {
    if (!mayBe) await reader.close()
  }
}

const refuseBlob =
  (response: ServerResponse, refuseHere: typeof refuse) =>
  (status: 412 | 416, headers: OutgoingHttpHeaders): void =>
    status === 416
      ? refuseHere(response, 416, 'E_RANGE_INVALID', 'the range does not overlap the file', headers)
      : refuseHere(response, 412, 'E_PRECONDITION_FAILED', 'the conditions do not match this version', headers)

/** Reads bytes in memory like a blob. */
export function readerOf(bytes: Uint8Array, digest = UNNAMED): BlobReader {
  return {
    digest,
    sizeBytes: bytes.length,
    fd: undefined,
    read: async (target, offset) => {
      const part = bytes.subarray(offset, offset + target.length)
      target.set(part)
      return part.length
    },
    stream: async function* (range) {
      yield bytes.subarray(range?.start, range?.end)
    },
    close: async () => undefined
  }
}

/** Reads a small file of a view like a blob. */
async function openUnpacked({ path, digest, sizeBytes }: ServedFile): Promise<BlobReader> {
  const handle = await open(path)
  return {
    digest,
    sizeBytes,
    fd: handle.fd,
    read: async (target, offset) => (await handle.read(target, 0, target.length, offset)).bytesRead,
    stream: (range) => handle.createReadStream({ start: range?.start, end: range && range.end - 1 }),
    close: () => handle.close()
  }
}
