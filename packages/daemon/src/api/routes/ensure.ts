import { ROUTES } from '@svc/client/protocol'
import { type EnsureParts, ensure } from '../../jobs/ensure.ts'
import type { Filler } from '../../jobs/fill.ts'
import { defineRoute } from '../route.ts'

export interface EnsureRouteParts extends Omit<EnsureParts, 'filler'> {
  /** Absent while the swarm client is off. */
  readonly swarm: { readonly filler: Filler } | undefined
}

/** Whatever is wrong with the reference is a failed job, not a refusal (spec job.3). */
export const ensureRoute = ({ swarm, ...parts }: EnsureRouteParts) =>
  defineRoute(ROUTES.ensure, ({ body }) => ensure(body.ref, { ...parts, filler: swarm?.filler }))
