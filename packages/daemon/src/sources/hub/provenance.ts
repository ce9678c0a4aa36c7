import type { HubListing } from '@svc/hub'
import type { Provenance } from '../../library/provenance.ts'

/** Who may have what a listing names: what the hub itself says of the repository at this moment (spec add.37). */
export function hubProvenance(
  { restricted }: Pick<HubListing, 'restricted'>,
  { hasToken }: { readonly hasToken: boolean }
): Provenance {
  if (!restricted) return { access: 'public', confirmedPublicAt: new Date().toISOString() }
  return { access: 'restricted', ...(hasToken && { by: 'hub-token' }) }
}
