import type { DiskBlobStore } from '@svc/cas'
import { type HeaderSummary, isWeights, needsSafetensorsQuant, planArtifacts } from '@svc/classify'
import type { ComingModel, Offload } from '@svc/internal-state'
import { quantFacts } from './choice.ts'
import { companionsOf } from './companions.ts'
import { configFacts } from './config-facts.ts'
import type { Ingested } from './ingest.ts'
import type { PlannedImport } from './plan.ts'
import { manifestFile, writeDocument } from './seal.ts'

/** For facts that the name does not show and no quant depends on. */
const NOTHING_READ: HeaderSummary = { format: 'gguf', version: 3, bigEndian: false, complete: false }

/** Headers of weights before the weights are here, by name: those of safetensors, if the quant depends on them. */
export async function earlyHeaders(
  plan: PlannedImport,
  offload: Offload,
  signal: AbortSignal
): Promise<Map<string, HeaderSummary>> {
  const { recognition } = plan
  const isNeeded = needsSafetensorsQuant(recognition, { quants: [] })
  const { headers } = isNeeded ? await quantFacts(plan, offload, signal) : { headers: new Map<string, HeaderSummary>() }
  for (const { name } of recognition.entries.filter(isWeights)) if (!headers.has(name)) headers.set(name, NOTHING_READ)
  return headers
}

/** The artifacts that an import will make, from all files but the large ones, whose digests its source has listed. */
export async function comingModels(
  plan: PlannedImport,
  { blobs, companions: beside, config, licences }: Ingested,
  headers: Map<string, HeaderSummary>,
  { store, offload, signal }: { readonly store: DiskBlobStore; readonly offload: Offload; readonly signal: AbortSignal }
): Promise<ComingModel[]> {
  const { source, recognition, files } = plan
  const companions = companionsOf(plan.companions, source, beside)
  if (companions !== undefined) await writeDocument(store, companions, signal)
  const facts =
    config === undefined ? undefined : await configFacts(config === 'tooLarge' ? undefined : config, offload)
  const { artifacts } = planArtifacts(recognition, { config: facts, licences, headers })
  return artifacts.map(({ quant, entries, annotations, modelConfig }) => ({
    quant,
    manifest: {
      annotations,
      files: entries.map((entry) => {
        const { name, sizeBytes, content } = entry
        const listed = content.from === 'file' ? files.get(content.name)!.digest : undefined
        return manifestFile(entry, blobs.get(name) ?? { digest: listed!, sizeBytes, merkleRoot: undefined })
      })
    },
    upstreamConfig: modelConfig.upstream,
    companions: companions && { digest: companions.digest, files: companions.document.files }
  }))
}
