import type { HubFile, HubListing } from '@svc/hub'

/**
 * A file that shows whether the repository is gated: one in large-file storage, if there is one. One byte of it is
 * requested.
 */
export function cheapestWitness({ files }: Pick<HubListing, 'files'>): HubFile | undefined {
  return (
    files.find((file) => file.sha256 !== undefined && file.sizeBytes > 0) ?? files.find((file) => file.sizeBytes > 0)
  )
}
