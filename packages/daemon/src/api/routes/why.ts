import { ROUTES, type WhyResult } from '@svc/client/protocol'
import type { ArtifactState, Artifacts } from '../../library/artifacts.ts'
import { digestsOf } from '../../library/open.ts'
import { DOORS, type Door, verdictOf } from '../../library/provenance.ts'
import type { Resolver } from '../../library/resolve.ts'
import { UnreadableStateError } from '../../library/strict.ts'
import { defineRoute } from '../route.ts'

export interface WhyDeps {
  readonly resolver: Resolver
  readonly artifacts: Pick<Artifacts, 'read'>
  readonly config: {
    readonly swarm: {
      readonly enabled: boolean
      readonly seed: boolean
      readonly seedRestricted: boolean
      readonly webseedAddr: string
    }
    readonly mirror: { readonly hubAddr?: string | undefined; readonly ociAddr?: string | undefined }
  }
}

export const whyRoute = ({ resolver, artifacts, config }: WhyDeps) =>
  defineRoute(ROUTES.why, async ({ query }): Promise<WhyResult> => {
    const resolved = await resolver.resolve(query.ref)
    const [manifestDigest] = digestsOf(resolved)
    const state = await artifacts.read(manifestDigest).catch((error: unknown) => {
      if (!(error instanceof UnreadableStateError)) throw error
      return 'damaged' as const
    })
    const doors = DOORS.map((door) => {
      const { given, ...withheld } = verdictOf(state, door, config.swarm)
      return {
        door,
        open: isOpen(door, config),
        given,
        ...('fact' in withheld && { withheld: { fact: withheld.fact, reason: withheld.reason } })
      }
    })
    return { ref: resolved.ref, manifestDigest, ...factsOf(state), doors }
  })

function factsOf(state: ArtifactState | 'damaged' | undefined): Omit<WhyResult, 'ref' | 'manifestDigest' | 'doors'> {
  if (state === undefined) return { record: 'absent' }
  if (state === 'damaged') return { record: 'damaged' }
  const { source, importedAt, provenance } = state
  const { kind, repo, revision } = source
  const { unproven, ...facts } = provenance
  return {
    record: 'present',
    source: { kind, ...(repo !== undefined && { repo }), ...(revision !== undefined && { revision }) },
    ...(importedAt !== undefined && { importedAt }),
    ...facts,
    ...(unproven !== undefined && { unproven: [...unproven] })
  }
}

/** Whether the configuration opens a door at all; the command line's are always open. */
function isOpen(door: Door, { swarm, mirror }: WhyDeps['config']): boolean {
  const isSeeding = swarm.enabled && swarm.seed
  const open: Readonly<Partial<Record<Door, boolean>>> = {
    swarm: isSeeding,
    webseed: isSeeding && swarm.webseedAddr !== '',
    'hub-mirror': mirror.hubAddr !== undefined,
    'oci-mirror': mirror.ociAddr !== undefined
  }
  return open[door] ?? true
}
