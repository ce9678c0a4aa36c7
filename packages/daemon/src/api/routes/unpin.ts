import { ROUTES } from '@svc/client/protocol'
import type { Removals } from '../../library/removal.ts'
import { defineRoute } from '../route.ts'
import { blobDigest } from './blob.ts'

export const unpinRoute = ({ removals }: { readonly removals: Removals }) =>
  defineRoute(ROUTES.unpin, ({ params }) => removals.unpin(blobDigest(params.digest)))
