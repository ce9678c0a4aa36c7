import type { Manifest } from '@svc/manifest'
import { someOf } from './companions.ts'
import { readSmallBlob } from './small-blob.ts'
import type { StoreState } from './state.ts'

/** That of the largest models has a few megabytes; a longer one would keep others waiting. */
const MAX_INDEX_BYTES = 16 << 20

/**
 * A warning about each list of shards that names files outside the model. Nothing outside was imported, but whoever
 * loads the folder may follow such a name. @throws what reading blobs does
 */
export async function outsideWarnings(
  files: Manifest['files'],
  { store, documents }: Pick<StoreState, 'documents'> & { readonly store: Pick<StoreState['store'], 'stat' | 'open'> }
): Promise<string[]> {
  const warnings: string[] = []
  const indexes = new Map(files.filter(({ role }) => role === 'weights-index').map((file) => [file.digest, file]))
  for (const { name, digest, size } of indexes.values()) {
    if (size > MAX_INDEX_BYTES) continue
    const bytes = await readSmallBlob(store, digest, MAX_INDEX_BYTES)
    const outside = bytes === undefined ? [] : await documents.parse('outsideNames', bytes)
    if (outside.length > 0)
      warnings.push(`${name} names files outside the model, which no loader should follow: ${someOf(outside)}`)
  }
  return warnings
}
