import type { ImportSource } from '../../import/source.ts'
import { ociFailure } from './errors.ts'
import type { Listed } from './listing.ts'

/** Files fetched concurrently. */
const CONCURRENCY = 4

/**
 * An OCI artifact as an import source. Each file's digest is that of its layer, so files that the store has are not
 * fetched. Unrecognised files (such as a README) are not fetched either.
 */
export function ociSource(oci: typeof import('@svc/oci'), listed: Listed): ImportSource {
  const { model, from } = listed
  return {
    kind: 'oci',
    files: model.files.map((file) => ({
      name: file.name,
      sizeBytes: file.sizeBytes,
      digest: file.digest,
      open: async () => ({
        kind: 'remote',
        fetch: async (into, context) => {
          try {
            await listed.fetch(file, into, context)
          } catch (error) {
            throw ociFailure(oci, error)
          }
        },
        close: async () => undefined
      })
    })),
    annotations: model.annotations,
    fetchUnrecognised: false,
    concurrency: CONCURRENCY,
    // a registry may require a login for any of the files
    provenance: () => ({ ...listed.provenance(), ...(model.isWithheld && { marked: true }) }),
    origin: { kind: 'oci', ...from },
    hints: { trackers: [], webseeds: [], peers: [] },
    warnings: [],
    close: () => listed.close()
  }
}
