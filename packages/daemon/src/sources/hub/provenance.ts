import type { HubListing } from '@svc/hub'
import { type Clock, timestampOf } from '@svc/internal-clock'
import type { Provenance } from '../../library/provenance.ts'

/** Who may have what a listing names: what the hub itself says of the repository at this moment (spec add.37). */
export function hubProvenance(
  { restricted }: Pick<HubListing, 'restricted'>,
  { hasToken, clock }: { readonly hasToken: boolean; readonly clock: Clock }
): Provenance {
  if (!restricted) return { access: 'public', confirmedPublicAt: timestampOf(clock) }
  return { access: 'restricted', ...(hasToken && { by: 'hub-token' }) }
}
