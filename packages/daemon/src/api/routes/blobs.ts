import { type BlobReader, CasError, type DiskBlobStore } from '@svc/cas'
import { ROUTES } from '@svc/client/protocol'
import { BufferPool, envelope, sendBlob, sendJson } from '@svc/internal-server'
import type { Removals } from '@svc/library/parts'
import { type Sha256Digest, tryParseTypedDigest } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import { defineByteRoute, defineRoute, type Exchange } from '../route.ts'

/** The `Range` header is parsed in `http/range.ts`. */
export function blobRoutes({ store, removals }: { readonly store: DiskBlobStore; readonly removals: Removals }) {
  const pool = new BufferPool()
  const answer = async (digest: string) => {
    const reader = await openBlob(store, blobDigest(digest))
    return (exchange: Exchange) => send(exchange, reader, pool)
  }
  return {
    blob: defineByteRoute(ROUTES.blob, ({ params }) => answer(params.digest)),
    blobHead: defineByteRoute(ROUTES.blobHead, ({ params }) => answer(params.digest)),
    unpin: defineRoute(ROUTES.unpin, ({ params }) => removals.releasePin(blobDigest(params.digest)))
  }
}

const send = ({ request, response }: Exchange, reader: BlobReader, pool: BufferPool): Promise<void> =>
  sendBlob(request, response, reader, {
    pool,
    refuse: (status, headers) => {
      const asked = String(request.headers.range).slice(0, 200)
      const refusal =
        status === 416
          ? envelope(
              'E_RANGE_INVALID',
              `the range does not overlap the ${reader.sizeBytes} bytes of the blob: ${asked}`
            )
          : envelope('E_PRECONDITION_FAILED', 'If-Match names another blob')
      sendJson(response, status, refusal, headers)
    }
  })

/** @throws DaemonError `E_NOT_FOUND` */
async function openBlob(store: DiskBlobStore, digest: Sha256Digest): Promise<BlobReader> {
  try {
    return await store.open(digest)
  } catch (error) {
    if (!(error instanceof CasError) || error.code !== 'E_NOT_FOUND') throw error
    throw new DaemonError('E_NOT_FOUND', `there is no blob ${digest}`, { cause: error })
  }
}

/** @throws DaemonError `E_BAD_REQUEST` */
function blobDigest(text: string): Sha256Digest {
  const digest = tryParseTypedDigest(text)
  if (digest !== undefined) return digest
  throw new DaemonError(
    'E_BAD_REQUEST',
    'a blob is addressed by "sha256:" and 64 lower-case hex characters, or by the hex alone'
  )
}
