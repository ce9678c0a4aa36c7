import { ROUTES } from '@svc/client/protocol'
import { type RepoId, tryParseRepoId } from '@svc/ref'
import { DaemonError } from '../../errors.ts'
import type { Removals } from '../../library/removal.ts'
import { defineRoute } from '../route.ts'

export const removeModelRoute = ({ removals }: { readonly removals: Removals }) =>
  defineRoute(ROUTES.removeModel, ({ params, query }) =>
    removals.remove({ ...repoOf(params), allTags: query.tags === 'all' })
  )

export const removeQuantRoute = ({ removals }: { readonly removals: Removals }) =>
  defineRoute(ROUTES.removeQuant, ({ params, query }) =>
    removals.remove({ ...repoOf(params), quant: params.quant, allTags: query.tags === 'all' })
  )

function repoOf({ ns, name }: RepoId): RepoId {
  const repo = tryParseRepoId(`${ns}/${name}`)
  if (repo !== undefined) return repo
  const shown = JSON.stringify(`${ns}/${name}`.slice(0, 200))
  throw new DaemonError('E_BAD_REQUEST', `${shown} is no name of a model; write ns/name in lower case`)
}
