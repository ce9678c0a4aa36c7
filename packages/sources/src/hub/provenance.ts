import type { HubListing } from '@svc/hub'
import { type Clock, timestampOf } from '@svc/internal-clock'
import type { Provenance } from '@svc/library/parts'

/** Who may have the files of a listing, by the hub's current statement about the repository (spec add.37). */
export function hubProvenance(
  { restricted }: Pick<HubListing, 'restricted'>,
  { hasToken, clock }: { readonly hasToken: boolean; readonly clock: Clock }
): Provenance {
  if (!restricted) return { access: 'public', confirmedPublicAt: timestampOf(clock) }
  return { access: 'restricted', ...(hasToken && { by: 'hub-token' }) }
}
