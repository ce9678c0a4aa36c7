import type { PlannedArtifacts, Warning, WarningCode } from '@svc/classify'
import { LibraryError, MAX_UNPROVEN, type Provenance } from '@svc/internal-state'
import type { Manifest } from '@svc/manifest'
import type { ImportSelection } from './selection.ts'

const CODES: ReadonlySet<WarningCode> = new Set(['unreadable-header', 'damaged-weights'] satisfies WarningCode[])

/**
 * The warnings of weights that no runtime can load: no header of their format, or tensors beyond the file (spec rec.12).
 * @throws LibraryError `E_NOT_IMPORTABLE` for such weights, where the caller refuses them
 */
export function malformedIn(
  { warnings }: Pick<PlannedArtifacts, 'warnings'>,
  { refusesMalformed }: Pick<ImportSelection, 'refusesMalformed'>
): readonly Warning[] {
  const malformed = warnings.filter(({ code }) => CODES.has(code))
  const [first, ...more] = malformed
  if (!refusesMalformed || first === undefined) return malformed
  const others = more.length === 0 ? '' : `, and ${more.length} more files`
  const message = `no model: ${first.message}${others}. Nothing was imported; "malformed": "keep" imports it all the same`
  throw new LibraryError('E_NOT_IMPORTABLE', message)
}

/** The provenance of each artifact, with the names of its malformed weights. */
export function markingMalformed(
  provenanceOf: (manifest: Manifest) => Provenance,
  malformed: readonly Warning[]
): (manifest: Manifest) => Provenance {
  const names = new Set(malformed.flatMap((warning) => warning.names))
  return (manifest) => {
    const own = manifest.files.map(({ name }) => name).filter((name) => names.has(name))
    return { ...provenanceOf(manifest), ...(own.length > 0 && { malformed: own.slice(0, MAX_UNPROVEN) }) }
  }
}
