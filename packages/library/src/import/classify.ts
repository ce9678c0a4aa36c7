import type { DiskBlobStore } from '@svc/cas'
import type { EntryKind, PlannedArtifacts } from '@svc/classify'
import type { HeaderRead, Offload } from '@svc/internal-state'
import type { Ingested } from './ingest.ts'
import type { PlannedImport } from './plan.ts'

/** What is read of an entry. */
const READS: Readonly<Partial<Record<EntryKind, HeaderRead['what']>>> = {
  'weights.gguf': 'gguf-head',
  'weights.safetensors': 'safetensors-header',
  opaque: 'start'
}

/**
 * Stage 3, when the bytes are in the store: derives quants and artifacts from headers, `config.json` and licences.
 * Headers are read from the blobs, off the event loop. @throws ClassifyError
 */
export function classifyFiles(
  plan: PlannedImport,
  ingested: Ingested,
  store: DiskBlobStore,
  offload: Offload
): Promise<PlannedArtifacts> {
  const { recognition } = plan
  const headers: HeaderRead[] = []
  for (const { name, kind } of recognition.entries) {
    const what = READS[kind]
    if (what === undefined) continue
    const { digest, sizeBytes } = ingested.blobs.get(name)!
    headers.push({ name, what, sizeBytes, path: store.blobPath(digest) })
  }
  return offload.call('plan', {
    recognition,
    headers,
    config: ingested.config,
    licences: ingested.licences
  })
}
