import { ROUTES, type ShareResult } from '@svc/client/protocol'
import { formatRepoId } from '@svc/ref'
import { ConfigError, DaemonError } from '../../errors.ts'
import type { Library } from '../../library/library.ts'
import { digestsOf } from '../../library/open.ts'
import type { LocalImports } from '../../sources/local/local-imports.ts'
import type { SharingChoices } from '../../swarm/sharing-choices.ts'
import type { SwarmClient } from '../../swarm/swarm-client.ts'
import { swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

export interface ShareDeps extends Pick<Library, 'resolver' | 'documents'> {
  readonly swarm: Pick<SwarmClient, 'share'> | undefined
}

export function shareRoutes({ resolver, documents, swarm }: ShareDeps) {
  const share = async (ref: string, join: boolean): Promise<ShareResult> => {
    const resolved = await resolver.resolve(ref)
    const [manifestDigest] = digestsOf(resolved)
    await documents.requireManifest(manifestDigest)
    return (swarm ?? swarmIsOff()).share({ ref: resolved.ref, manifestDigest, name: formatRepoId(resolved), join })
  }
  return {
    share: defineRoute(ROUTES.share, ({ query }) => share(query.ref, false)),
    joinShare: defineRoute(ROUTES.joinShare, ({ body }) => share(body.ref, true))
  }
}

/** The owner's decisions on what is shared. */
export interface SeedDeps {
  readonly sharing: SharingChoices
  readonly local: LocalImports
}

export const seedRoutes = ({ local, sharing }: SeedDeps) => ({
  uploadLimit: defineRoute(ROUTES.uploadLimit, ({ body }) =>
    refusingAsRequest(sharing.limitUpload(body.bytesPerSecond))
  ),
  seed: defineRoute(ROUTES.seed, ({ body }) => refusingAsRequest(sharing.decideSeed(body.seed))),
  seedLocal: defineRoute(ROUTES.seedLocal, ({ body }) => refusingAsRequest(local.decideSeedLocal(body.seedLocal)))
})

async function refusingAsRequest<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause
    throw new DaemonError('E_BAD_REQUEST', cause.message, { cause })
  }
}
