import type { Hub, HubListing } from '@svc/hub'

/**
 * Asks for one byte of a listing's files, since that of a gated repository may be open: of one in large-file storage, if there is one.
 * @throws HubError for a repository that the hub does not give
 */
export async function probeAccess(
  hub: Pick<Hub, 'probe'>,
  { files }: Pick<HubListing, 'files'>,
  options: Parameters<Hub['probe']>[1]
): Promise<void> {
  const filled = files.filter(({ sizeBytes }) => sizeBytes > 0)
  const witness = filled.find(({ sha256 }) => sha256 !== undefined) ?? filled[0]
  if (witness !== undefined) await hub.probe(witness, options)
}
