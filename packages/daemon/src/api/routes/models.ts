import { ROUTES, type WhyResult } from '@svc/client/protocol'
import {
  type ArtifactState,
  companionsUnder,
  DOORS,
  type Documents,
  type Door,
  giveName,
  givenCompanions,
  importTarget,
  type Library,
  type ListingDeps,
  type NamingDeps,
  type OpenDeps,
  openRef,
  ownCompanions,
  type Removals,
  toldWithheld,
  UnreadableStateError,
  verdictOf
} from '@svc/library/parts'
import { formatRepoId, type Sha256Digest } from '@svc/ref'
import { advise } from '../../advice.ts'
import { DaemonError } from '../../errors.ts'
import { type InventoryPage, inventoryText } from '../inventory.ts'
import { repoOf } from '../repo-of.ts'
import { defineByteRoute, defineRoute, sendJsonText } from '../route.ts'

/** Constants required by spec route.2; they say nothing about what the daemon can do. */
const PLAN = {
  plan: 'pending',
  planReason: 'the plan is not computed by this version; use open and ensure'
} as const

export interface ModelRoutesDeps
  extends OpenDeps,
    ListingDeps,
    NamingDeps,
    WhyDeps,
    Pick<Library, 'store' | 'resolver' | 'documents' | 'artifacts' | 'usage'> {
  readonly removals: Removals
  /** Called after each change, before the response: listeners and swarms stop serving the artifact, or may start. */
  readonly onWithheld: (manifestDigest: Sha256Digest) => Promise<void>
}

export const modelRoutes = (deps: ModelRoutesDeps) => ({
  resolve: defineRoute(ROUTES.resolve, async ({ query }) => {
    try {
      return { ...(await deps.resolver.resolve(query.ref)), ...PLAN }
    } catch (error) {
      // a store without one of its folders cannot say that something is unknown
      deps.store.check()
      throw error
    }
  }),
  open: defineRoute(ROUTES.open, async ({ query }) => {
    const { files, missing, companions, ...resolved } = await openRef(query.ref, deps)
    deps.usage.note(resolved.manifestDigest)
    return { ...resolved, ...PLAN, files, ...(missing && { missing }), ...(companions && { companions }) }
  }),
  models: defineByteRoute(ROUTES.models, async ({ query }) => {
    const pieces = await inventoryText(deps, pageOf(query))
    return async ({ response }) => sendJsonText(response, ROUTES.models.status, pieces)
  }),
  removeModel: defineRoute(ROUTES.removeModel, ({ params, query }) =>
    deps.removals.remove({ ...repoOf(params), allTags: query.tags === 'all' })
  ),
  removeQuant: defineRoute(ROUTES.removeQuant, ({ params, query }) =>
    deps.removals.remove({ ...repoOf(params), quant: params.quant, allTags: query.tags === 'all' })
  ),
  giveName: defineRoute(ROUTES.giveName, async ({ body: { from, as, move, replace } }) => {
    const [repo = '', quant] = from.split(':', 2)
    const [ns = '', name = ''] = repo.split('/', 2)
    const naming = { from: repoOf({ ns, name }), to: importTarget(as, 'as') }
    const to = formatRepoId(naming.to)
    if (formatRepoId(naming.from) === to) throw new DaemonError('E_BAD_REQUEST', `${to} has that name already`)
    const named = await giveName({ ...naming, quant, isMove: move === true, mayReplace: replace === true }, deps)
    return { as: to, quants: [...named.quants], tags: [...named.tags] }
  }),
  setPrivate: defineRoute(ROUTES.setPrivate, async ({ body }) => {
    const { ref, manifestDigest } = await deps.resolver.resolveHere(body.ref)
    await deps.artifacts.setPrivate(manifestDigest, body.private)
    await deps.onWithheld(manifestDigest)
    return { ref, manifestDigest, private: body.private }
  }),
  setPinned: defineRoute(ROUTES.setPinned, async ({ body }) => {
    const { ref, manifestDigest } = await deps.resolver.resolveHere(body.ref)
    await deps.artifacts.setKept(manifestDigest, body.pinned)
    return { ref, manifestDigest, pinned: body.pinned }
  }),
  why: whyRoute(deps)
})

const MAX_PAGE = 10_000

function pageOf({ limit, after }: { readonly limit?: string; readonly after?: string }): InventoryPage | undefined {
  if (limit === undefined && after === undefined) return undefined
  const count = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit)
  if (limit !== undefined && !(/^\d{1,5}$/.test(limit) && count >= 1 && count <= MAX_PAGE))
    throw new DaemonError('E_BAD_REQUEST', `the query parameter "limit" is a number from 1 to ${MAX_PAGE}`)
  return { limit: count, after: after === undefined ? undefined : importTarget(after, 'after') }
}

interface WhyDeps extends Pick<Library, 'resolver' | 'artifacts' | 'documents' | 'signed'> {
  readonly config: {
    readonly swarm: {
      readonly enabled: boolean
      readonly seed: boolean
      readonly seedRestricted: boolean
      readonly webseedAddr: string
    }
    readonly mirror: { readonly [address in 'hubAddr' | 'ociAddr' | 's3Addr']?: string | undefined }
  }
}

const whyRoute = ({ resolver, artifacts, documents, signed, config }: WhyDeps) =>
  defineRoute(ROUTES.why, async ({ query }): Promise<WhyResult> => {
    const resolved = await resolver.resolve(query.ref)
    const { manifestDigest } = resolved
    const state = await artifacts.read(manifestDigest).catch((error: unknown) => {
      if (!(error instanceof UnreadableStateError)) throw error
      return 'damaged' as const
    })
    const isHere = typeof state === 'object' && state.incomplete !== true && state.away !== true
    const unsigned = isHere ? await signed.complaint(state, formatRepoId(resolved)) : undefined
    const doors = DOORS.map((door) => {
      const verdict = verdictOf(state, door, config.swarm)
      const isUnsigned = verdict.given && unsigned !== undefined && door.endsWith('-mirror')
      const { given, ...withheld } = isUnsigned
        ? ({ given: false, fact: 'unsigned', reason: unsigned } as const)
        : verdict
      return {
        door,
        open: isOpen(door, config),
        given,
        ...('fact' in withheld && { withheld: { fact: withheld.fact, reason: toldWithheld(withheld, advise) } })
      }
    })
    const beside = typeof state === 'object' ? await besideOf(state, formatRepoId(resolved), documents) : {}
    return { ref: resolved.ref, manifestDigest, ...factsOf(state), ...beside, doors }
  })

async function besideOf(
  state: ArtifactState,
  name: string,
  documents: Pick<Documents, 'companions'>
): Promise<Pick<WhyResult, 'companions'>> {
  const digest = companionsUnder(state, name)
  const document = digest && (await documents.companions(digest))
  if (document === undefined) return {}
  const given = givenCompanions(document, state)?.document.files.length ?? 0
  return { companions: { given, own: ownCompanions(document, state).map(({ path }) => path) } }
}

function factsOf(
  state: ArtifactState | 'damaged' | undefined
): Omit<WhyResult, 'ref' | 'manifestDigest' | 'companions' | 'doors'> {
  if (state === undefined) return { record: 'absent' }
  if (state === 'damaged') return { record: 'damaged' }
  const { source, importedAt, provenance, copies } = state
  const { kind, repo, revision } = source
  const { unproven, malformed, ...facts } = provenance
  return {
    record: 'present',
    source: { kind, ...(repo !== undefined && { repo }), ...(revision !== undefined && { revision }) },
    ...(importedAt !== undefined && { importedAt }),
    ...facts,
    ...(unproven !== undefined && { unproven: [...unproven] }),
    ...(malformed !== undefined && { malformed: [...malformed] }),
    ...(copies !== undefined && { copies: copies.map((copy) => ({ ...copy })) })
  }
}

/** Whether the configuration opens a door; those of the command line are always open. */
function isOpen(door: Door, { swarm, mirror }: WhyDeps['config']): boolean {
  const isSeeding = swarm.enabled && swarm.seed
  const open: Readonly<Partial<Record<Door, boolean>>> = {
    swarm: isSeeding,
    webseed: isSeeding && swarm.webseedAddr !== '',
    'hub-mirror': mirror.hubAddr !== undefined,
    'oci-mirror': mirror.ociAddr !== undefined,
    's3-mirror': mirror.s3Addr !== undefined
  }
  return open[door] ?? true
}
