import type { DiskBlobStore } from '@svc/cas'
import type { ManifestEntry, ModelFinding } from '@svc/classify'
import { type InspectedFile, type InspectionRule, LibraryError, type Offload } from '@svc/internal-state'
import type { Ingested } from './ingest.ts'
import type { PlannedImport } from './plan.ts'

const MAX_SHOWN = 3
const MAX_FINDINGS = 100
const TAR_BLOCK_BYTES = 512

/**
 * Checks what an import brought for what runs code or is malformed (spec add.60), where a rule says so.
 * @returns warnings @throws LibraryError `E_NOT_IMPORTABLE` naming the rule, where it refuses such a model
 */
export async function inspectImport(
  { recognition }: Pick<PlannedImport, 'recognition'>,
  ingested: Pick<Ingested, 'blobs' | 'companions'>,
  rule: InspectionRule | undefined,
  { store, offload }: { readonly store: DiskBlobStore; readonly offload: Offload }
): Promise<string[]> {
  if (rule === undefined) return []
  const files = recognition.entries.flatMap((entry) =>
    filesOf(entry, store.blobPath(ingested.blobs.get(entry.name)!.digest))
  )
  for (const [name, { digest, sizeBytes }] of ingested.companions)
    files.push({ name, path: store.blobPath(digest), offset: 0, sizeBytes })
  const findings: ModelFinding[] = []
  // each by itself: what is read of one is bounded, and the others are read whatever it is
  for (const file of files) {
    if (findings.length > MAX_FINDINGS) break
    findings.push(...(await offload.call('inspect', { files: [file] })).findings)
  }
  if (findings.length === 0) return []
  const told = findings.slice(0, MAX_SHOWN).map(saidOf).join('; ')
  const more = findings.length > MAX_SHOWN ? `, and ${findings.length - MAX_SHOWN} more` : ''
  const what = `${rule.label}: ${told}${more}`
  if (rule.mode === 'refuse')
    throw new LibraryError('E_NOT_IMPORTABLE', `refused by the rule ${what}. Nothing was imported`)
  return [what]
}

const saidOf = ({ file, key, what }: ModelFinding): string => `${file}${key === undefined ? '' : ` (${key})`} ${what}`

/** An entry's file, or those in its tar, whose bytes lie there one after the other. */
function filesOf({ name, sizeBytes, content }: ManifestEntry, path: string): InspectedFile[] {
  if (content.from === 'file') return [{ name, path, offset: 0, sizeBytes }]
  let offset = 0
  return content.members.map((member) => {
    const at = offset + TAR_BLOCK_BYTES
    offset = at + Math.ceil(member.sizeBytes / TAR_BLOCK_BYTES) * TAR_BLOCK_BYTES
    return { name: member.name, path, offset: at, sizeBytes: member.sizeBytes }
  })
}
