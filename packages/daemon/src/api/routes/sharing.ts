import { ROUTES, type ShareResult } from '@svc/client/protocol'
import type { Library } from '@svc/library/parts'
import { formatRepoId } from '@svc/ref'
import type { SwarmClient } from '@svc/sharing/parts'
import { howToFetch, sharedNote } from '../../advice.ts'
import { ConfigError, DaemonError } from '../../errors.ts'
import type { LocalImports } from '../../jobs/local-imports.ts'
import type { SharingChoices } from '../../sharing-choices.ts'
import { swarmIsOff } from '../refusals.ts'
import { defineRoute } from '../route.ts'

export interface SharingRoutesDeps extends Pick<Library, 'resolver'> {
  readonly swarm: Pick<SwarmClient, 'share' | 'peers'> | undefined
  /** The owner's decisions on what is shared. */
  readonly sharing: SharingChoices
  readonly local: LocalImports
}

export function sharingRoutes({ resolver, swarm, sharing, local }: SharingRoutesDeps) {
  const share = async (text: string, join: boolean): Promise<ShareResult> => {
    const { ref, ns, name, manifestDigest } = await resolver.resolveHere(text)
    const request = { ref, manifestDigest, name: formatRepoId({ ns, name }), join }
    const { heldBack, note, recognise, ...shared } = await (swarm ?? swarmIsOff()).share(request)
    const said = sharedNote(heldBack, note)
    const { magnet, companions } = shared
    const command = howToFetch({ magnet, pin: manifestDigest, companions, recognise })
    return { ...shared, ...(said !== undefined && { note: said }), command }
  }
  return {
    share: defineRoute(ROUTES.share, ({ query }) => share(query.ref, false)),
    joinShare: defineRoute(ROUTES.joinShare, ({ body }) => share(body.ref, true)),
    peers: defineRoute(ROUTES.peers, async () => swarm?.peers() ?? { peers: [], more: 0 }),
    uploadLimit: defineRoute(ROUTES.uploadLimit, ({ body }) =>
      refusingAsRequest(sharing.limitUpload(body.bytesPerSecond))
    ),
    downloadLimit: defineRoute(ROUTES.downloadLimit, ({ body }) =>
      refusingAsRequest(sharing.limitDownload(body.bytesPerSecond))
    ),
    seed: defineRoute(ROUTES.seed, ({ body }) => refusingAsRequest(sharing.decideSeed(body.seed))),
    seedLocal: defineRoute(ROUTES.seedLocal, ({ body }) => refusingAsRequest(local.decideSeedLocal(body.seedLocal)))
  }
}

async function refusingAsRequest<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause
    throw new DaemonError('E_BAD_REQUEST', cause.message, { cause })
  }
}
