import type { Sha256Digest } from '@svc/ref'
import { isReservedNamespace } from '@svc/ref'
import { isManifestComplete } from './complete.ts'
import type { StandingDeps } from './standing-deps.ts'

/** A complete model under a name: what a standing view may show. */
export interface NamedModel {
  readonly ns: string
  readonly name: string
  readonly quant: string
  readonly manifest: Sha256Digest
  /** The document of its companions under that name. */
  readonly companions: Sha256Digest | undefined
}

/** Every complete model that has a name, sorted by name. What cannot be read is left out: other commands report it. */
export async function namedModels(deps: StandingDeps): Promise<readonly NamedModel[]> {
  const { repos, documents, artifacts, store } = deps
  const models: NamedModel[] = []
  for await (const { ns, name, state } of repos.list(() => undefined)) {
    // the names of what clients of the mirror fetched
    if (state.index === undefined || isReservedNamespace(ns)) continue
    const index = await documents.index(state.index, { scan: true }).catch(() => undefined)
    for (const { quant, manifest } of index?.members ?? []) {
      const document = await documents.manifest(manifest, { scan: true }).catch(() => undefined)
      if (document === undefined || !isManifestComplete(document, store)) continue
      const companions = (await artifacts.ifReadable(manifest))?.companions?.[`${ns}/${name}`]
      models.push({ ns, name, quant, manifest, companions })
    }
  }
  return models
}
