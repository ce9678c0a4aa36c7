import { type Client, ClientError } from '@svc/client'
import { documentBytes } from './documents.ts'

/** The fields of a manifest that the command line reads. */
interface ManifestFacts {
  readonly annotations?: Record<string, string>
  readonly files?: readonly {
    readonly name: string
    readonly kind: string
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
