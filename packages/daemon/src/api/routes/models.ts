import type { DiskBlobStore } from '@svc/cas'
import { ROUTES } from '@svc/client/protocol'
import type { Documents } from '../../library/documents.ts'
import { inventory } from '../../library/models.ts'
import type { Repos } from '../../library/repos.ts'
import { defineRoute } from '../route.ts'

export interface ModelsParts {
  readonly repos: Repos
  readonly documents: Documents
  readonly store: DiskBlobStore
}

export const modelsRoute = ({ repos, documents, store }: ModelsParts) =>
  defineRoute(ROUTES.models, () => inventory(repos, documents, store))
