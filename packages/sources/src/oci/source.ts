import type { ImportSource } from '@svc/library/parts'
import { parseRegistryReference, type RegistryOptions } from '@svc/oci'
import { asLibrary } from './errors.ts'
import { type ListedArtifact, listLayout, listRegistry } from './listing.ts'
import { OciDocumentReader } from './oci-documents.ts'

/** An artifact in an image layout, a folder or a tar. */
export interface OciLayout {
  /** Absolute. */
  readonly path: string
  /** Which of its manifests, by tag or digest; not needed if there is only one. */
  readonly manifest?: string | undefined
}

/** An artifact in a registry. */
export interface OciImage {
  /** `registry/name:tag` or `registry/name@sha256:<hex>` */
  readonly image: string
  /** Without TLS, as always with registries on this machine. */
  readonly plainHttp?: boolean | undefined
  readonly userAgent?: string
  readonly downloads?: RegistryOptions['downloads']
}

const CONCURRENCY = 4

/** @throws LibraryError `E_INVALID` */
export const requireImage = (image: string): Promise<unknown> => asLibrary(() => parseRegistryReference(image))

/** Lists an artifact as an import source. @throws LibraryError; on abort the signal's reason */
export async function listOci(place: OciLayout | OciImage, signal: AbortSignal): Promise<ImportSource> {
  const documents = new OciDocumentReader()
  try {
    const listed = await asLibrary(() =>
      'path' in place
        ? listLayout(place.path, place.manifest, documents.read)
        : listRegistry(place.image, { ...place, readDocument: documents.read }, signal)
    )
    const close = async (): Promise<void> => {
      await listed.close()
      await documents.close()
    }
    return ociSource(listed, close)
  } catch (error) {
    await documents.close()
    throw error
  }
}

/**
 * Each file's digest is that of its layer, so files that the store has are not fetched. Unrecognized files (such as a README) are
 * not fetched either.
 */
function ociSource(listed: ListedArtifact, close: ImportSource['close']): ImportSource {
  const { model, from } = listed
  return {
    kind: 'oci',
    files: model.files.map((file) => ({
      name: file.name,
      sizeBytes: file.sizeBytes,
      digest: file.digest,
      fetch: (into, context) => asLibrary(() => listed.fetch(file, into, context))
    })),
    annotations: model.annotations,
    fetchUnrecognized: false,
    concurrency: CONCURRENCY,
    // a registry may require a login for any of the files
    provenance: () => ({ ...listed.provenance(), ...(model.isWithheld && { marked: true }) }),
    origin: { kind: 'oci', ...from },
    packedFrom: model.pin,
    warnings: [],
    close
  }
}
