import type { ReadAt } from '@svc/classify'
import { type Client, ClientError } from '@svc/client'
import { CliError } from '../errors.ts'

/** Manifests, indexes and records are no larger (spec doc.1). */
const MAX_DOCUMENT_BYTES = 4 << 20

/** The bytes of a small blob. @throws CliError for one that is larger than `maxBytes`; ClientError */
export async function documentBytes(client: Client, digest: string, maxBytes = MAX_DOCUMENT_BYTES): Promise<Buffer> {
  const { body, sizeBytes } = await client.readBlob(digest)
  if (sizeBytes <= maxBytes) return Buffer.concat(await body.toArray())
  body.destroy()
  throw new CliError('failed', `${digest} is too large for the metadata of a model`)
}

/** Random access to a blob. */
export const blobReader =
  (client: Client, digest: string): ReadAt =>
  async (start, lengthBytes) => {
    const { body } = await client.readBlob(digest, { start, end: start + lengthBytes })
    return Buffer.concat(await body.toArray())
  }

/** A JSON document, which was validated when it was stored. @throws as {@link documentBytes} */
export const jsonDocument = async (
  client: Client,
  digest: string,
  maxBytes?: number
): Promise<Readonly<Record<string, unknown>>> =>
  JSON.parse((await documentBytes(client, digest, maxBytes)).toString('utf8'))

interface ManifestFacts {
  readonly annotations?: Record<string, string>
  readonly files?: readonly {
    readonly name: string
    readonly kind: string
    readonly role?: string
    readonly digest: string
    readonly size: number
  }[]
}

/** The fields of a manifest and its own length; nothing if it is not present. */
export async function readManifestBlob(
  client: Client,
  digest: string
): Promise<ManifestFacts & { readonly sizeBytes: number }> {
  try {
    const bytes = await documentBytes(client, digest)
    return { ...(JSON.parse(bytes.toString('utf8')) as ManifestFacts), sizeBytes: bytes.length }
  } catch (error) {
    if (error instanceof ClientError && error.code === 'E_NOT_FOUND') return { sizeBytes: 0 }
    throw error
  }
}
