import { type Client, ClientError, type OpenResult } from '@svc/client'

/** A manifest is at most 4 MiB (spec doc.1). */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024

/** What the command line reads of a manifest. */
interface ManifestFacts {
  readonly annotations?: Record<string, string>
  readonly files?: readonly {
    readonly name: string
    readonly kind: string
    readonly digest: string
    readonly size: number
  }[]
}

/** The manifest, where it is here; else nothing. */
export async function readManifest(client: Client, result: OpenResult): Promise<ManifestFacts> {
  const blob = result.files.find((file) => file.digest === result.manifestDigest)
  return blob === undefined ? {} : readManifestBlob(client, blob.digest)
}

/** What a manifest says, and its own length; nothing where it is not here. */
export async function readManifestBlob(
  client: Client,
  digest: string
): Promise<ManifestFacts & { readonly sizeBytes: number }> {
  try {
    const { body } = await client.readBlob(digest, { end: MAX_MANIFEST_BYTES })
    const bytes = Buffer.concat(await body.toArray())
    return { ...(JSON.parse(bytes.toString('utf8')) as ManifestFacts), sizeBytes: bytes.length }
  } catch (error) {
    if (error instanceof ClientError && error.code === 'E_NOT_FOUND') return { sizeBytes: 0 }
    throw error
  }
}
