import type { ModelEntry } from '@svc/internal-models'
import { LibraryError, type Members, type StoreState } from '@svc/internal-state'
import { formatRef } from '@svc/ref'

/** All models with a name, sorted by it. Records and indexes that cannot be read are left out. */
export async function listModels({
  repos,
  documents,
  members
}: Pick<StoreState, 'repos' | 'documents'> & { readonly members: Members }): Promise<ModelEntry[]> {
  const quarantined = await members.quarantined()
  const models: ModelEntry[] = []
  for await (const { ns, name, state } of repos.list(() => undefined)) {
    if (state.index === undefined) continue
    const index = await documents.index(state.index, { scan: true }).catch((error: unknown) => {
      if (!(error instanceof LibraryError)) throw error
    })
    if (index === undefined) continue
    for (const { quant, manifest, sizeBytes, complete } of await members.of(
      `${ns}/${name}`,
      index,
      quarantined,
      () => undefined
    ))
      models.push({
        ref: formatRef({ ns, name, quant }),
        manifestDigest: manifest,
        sizeBytes,
        isComplete: complete
      })
  }
  return models.sort((a, b) => (a.ref < b.ref ? -1 : 1))
}
