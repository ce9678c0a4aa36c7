import type { DiskBlobStore } from '@svc/cas'
import {
  type GgufIdentityFound,
  type ManifestEntry,
  normalizedName,
  readGgufIdentity,
  recognize,
  requireImportable
} from '@svc/classify'
import { LibraryError, type Offload, readAtOf, upstreamName } from '@svc/internal-state'
import { forgetHead, walkIn } from './heads.ts'
import type { Ingested } from './ingest.ts'
import type { PlannedImport } from './plan.ts'

/** An import whose files are here. */
interface Here<P extends PlannedImport> {
  readonly plan: P
  readonly ingested: Ingested
}

/**
 * The headers of all GGUFs, now that they are here: they decide what each one is, also where its name settled that for the plan
 * (spec rec.26). What a source showed of them before must be what they say. An artifact that was packed stays as it was packed.
 * @throws LibraryError `E_BAD_LISTING` naming the file; ClassifyError `E_NOT_IMPORTABLE` if no weights are left
 */
export async function settleRoles<P extends PlannedImport>(
  here: Here<P>,
  parts: { readonly store: DiskBlobStore; readonly offload: Offload }
): Promise<Here<P>> {
  const { plan, ingested } = here
  const { heads, source, recognition } = plan
  if (heads === undefined || source.kind === 'oci') return here
  const renamed = new Map<string, string>()
  for (const set of setsOf(recognition.entries)) {
    const [first] = set
    const upstream = upstreamName(source.origin, first!.name)
    const shown = heads.get(upstream)
    const head = await headOf(ingested, first!.name, shown?.wantsQuant ?? false, parts)
    if (head === undefined || normalizedName(upstream, head) === first!.name) continue
    if (shown !== undefined) {
      forgetHead(plan.files.get(first!.name)!, source.origin)
      throw otherHeader(upstream)
    }
    for (const { name } of set) renamed.set(name, normalizedName(upstreamName(source.origin, name), head))
  }
  return renamed.size === 0 ? here : underNames(here, renamed)
}

const otherHeader = (upstream: string): LibraryError =>
  new LibraryError(
    'E_BAD_LISTING',
    `the header of ${JSON.stringify(upstream)} is not the one that its source showed before the import; import again`
  )

/** The GGUFs of an import, each with the other parts of its set. */
function setsOf(entries: readonly ManifestEntry[]): readonly (readonly ManifestEntry[])[] {
  const ggufs = entries.filter(({ name, content }) => name.endsWith('.gguf') && content.from === 'file')
  return [...Map.groupBy(ggufs, ({ group, name }) => group ?? name).values()]
}

async function headOf(
  { blobs }: Ingested,
  name: string,
  quant: boolean,
  { store, offload }: { readonly store: DiskBlobStore; readonly offload: Offload }
): Promise<GgufIdentityFound | undefined> {
  const blob = blobs.get(name)
  if (blob === undefined) return undefined
  const reader = await store.open(blob.digest)
  try {
    return await readGgufIdentity(readAtOf(reader.fd!, blob.sizeBytes), blob.sizeBytes, { quant }, walkIn(offload))
  } finally {
    await reader.close()
  }
}

/** The import with some of its files under the names that their headers give. */
function underNames<P extends PlannedImport>(
  { plan, ingested }: Here<P>,
  renamed: ReadonlyMap<string, string>
): Here<P> {
  const nameOf = (name: string): string => renamed.get(name) ?? name
  const rekeyed = <T>(map: ReadonlyMap<string, T>): Map<string, T> =>
    new Map([...map].map(([name, value]) => [nameOf(name), value]))
  const files = plan.source.files.map((file) => ({ ...file, name: nameOf(file.name) }))
  const { entries: marked, ...before } = plan.recognition
  const found = recognize(
    files.map(({ name, sizeBytes }) => ({ name, sizeBytes })),
    'normalized'
  )
  requireImportable(found)
  const marks = new Map(marked.map((entry) => [nameOf(entry.name), entry]))
  const entries = found.entries.flatMap((entry) => {
    const mark = marks.get(entry.name)
    // what the choice left out stays out
    if (mark === undefined) return []
    const { quant = entry.quant, goesWith, forms } = mark
    const isSame = mark.kind === entry.kind
    return [
      { ...entry, ...(isSame && { ...(quant && { quant }), ...(goesWith && { goesWith }), ...(forms && { forms }) }) }
    ]
  })
  const { origin } = plan.source
  const names = { ...origin.names }
  for (const [from, to] of renamed) {
    names[to] = upstreamName(origin, from)
    delete names[from]
  }
  const source = { ...plan.source, files, origin: { ...origin, ...(origin.kind === 'hf' && { names }) } }
  const recognition = { ...before, entries, uses: found.uses, skipped: found.skipped }
  return {
    plan: { ...plan, source, recognition, files: rekeyed(plan.files), listed: plan.listed.map(nameOf) },
    ingested: { ...ingested, blobs: rekeyed(ingested.blobs) }
  }
}
