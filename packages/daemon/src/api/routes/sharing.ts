import { ROUTES, type SeedResult, type ShareResult, type UploadLimitResult } from '@svc/client/protocol'
import { formatRepoId, type Sha256Digest } from '@svc/ref'
import { ConfigError, DaemonError } from '../../errors.ts'
import type { Documents } from '../../library/documents.ts'
import { digestsOf } from '../../library/open.ts'
import type { Resolver } from '../../library/resolve.ts'
import { swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

/** The swarm client's view of one artifact. */
interface Sharing {
  share(request: {
    readonly ref: string
    readonly manifestDigest: Sha256Digest
    /** `ns/name`, whose companions are meant. */
    readonly name: string
    /** Announce it first, if nothing prevents that. */
    readonly join?: boolean
  }): Promise<ShareResult>
}

export interface ShareDeps {
  readonly resolver: Resolver
  readonly documents: Documents
  readonly swarm: Sharing | undefined
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
  /** @throws ConfigError, DaemonError */
  decideSeed(seed: boolean): Promise<SeedResult>
  /** @throws ConfigError */
  limitUpload(bytesPerSecond: number): Promise<UploadLimitResult>
  readonly local: {
    /** @throws ConfigError */
    decideSeedLocal(value: boolean): Promise<{ readonly seedLocal: boolean; readonly file?: string }>
  }
}

export const seedRoutes = ({ local, decideSeed, limitUpload }: SeedDeps) => ({
  uploadLimit: defineRoute(ROUTES.uploadLimit, ({ body }) => refusingAsRequest(limitUpload(body.bytesPerSecond))),
  seed: defineRoute(ROUTES.seed, ({ body }) => refusingAsRequest(decideSeed(body.seed))),
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
