import type { DiskBlobStore } from '@svc/cas'
import type { PlannedArtifacts } from '@svc/classify'
import type { HeaderRead, Offload } from '@svc/internal-state'
import type { Ingested } from './ingest.ts'
import type { PlannedImport } from './plan.ts'

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
    if (kind !== 'weights.gguf' && kind !== 'weights.safetensors') continue
    const { digest, sizeBytes } = ingested.blobs.get(name)!
    headers.push({
      name,
      what: kind === 'weights.gguf' ? 'gguf-head' : 'safetensors-header',
      sizeBytes,
      path: store.blobPath(digest)
    })
  }
  return offload.call('plan', {
    recognition,
    headers,
    config: ingested.config,
    licences: ingested.licences
  })
}
