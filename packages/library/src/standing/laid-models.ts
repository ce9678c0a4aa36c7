import { filesOfCommit, readSmallBlob, upstreamName } from '@svc/internal-state'
import { MAX_MODEL_CONFIG_BYTES, type Manifest, type ModelConfig, parseModelConfig } from '@svc/manifest'
import { formatRepoId } from '@svc/ref'
import type { StandingFile, StandingLayout, StandingModel } from '@svc/view'
import type { NamedModel } from './shown-models.ts'
import type { StandingDeps } from './standing-deps.ts'

/** What a layout needs to know of a model; undefined for one that went meanwhile, or that its tool cannot load. */
export async function laidModel(
  layout: StandingLayout,
  named: NamedModel,
  deps: StandingDeps
): Promise<StandingModel | undefined> {
  const { ns, name, quant, manifest: digest } = named
  const manifest = await deps.documents.manifest(digest, { scan: true })
  if (manifest === undefined) return undefined
  const base = { ns, name, quant, manifest: digest }
  if (layout === 'hf') return { ...base, ...(await hubFiles(named, manifest, deps)) }
  const facts = await factsOf(manifest, deps)
  const files = weightsOf(manifest, deps)
  const { contextLength, upstream } = facts
  if (layout !== 'ollama') return { ...base, files, contextLength, hasConfig: upstream !== undefined }
  const ollama = await deps.ollamaForm({
    files: files.flatMap((file) => (file.digest === undefined ? [] : [{ ...file, digest: file.digest }])),
    manifestDigest: digest,
    annotations: manifest.annotations,
    model: facts
  })
  return ollama === undefined ? undefined : { ...base, files, ollama }
}

/** Under the publisher's names; below the publisher's repository only if the hub or the owner's cache gave it, as any document can claim one. */
async function hubFiles(
  named: NamedModel,
  { annotations }: Manifest,
  { views, artifacts, documents, store }: StandingDeps
): Promise<Pick<StandingModel, 'hub' | 'files'>> {
  const { ns, name, quant, manifest } = named
  const ref = `svc:///${formatRepoId(named)}:${quant}`
  const files = await views.standing.files({ ns, name, ref }, manifest)
  const source = (await artifacts.ifReadable(manifest))?.source
  const repo = ['hf', 'local'].includes(source?.kind ?? '') ? annotations['svc.hf.repo'] : undefined
  const commit = annotations['svc.hf.revision']
  const beside = named.companions && (await documents.companions(named.companions, { scan: true }))
  const listed = filesOfCommit(beside, { annotations }, source)
  return {
    hub: repo === undefined ? undefined : { repo, commit, listed },
    files: files.map((file) => ({
      name: source === undefined ? file.name : upstreamName(source, file.name),
      kind: file.kind,
      role: file.role,
      sizeBytes: file.sizeBytes,
      digest: file.digest,
      path: file.digest === undefined ? file.path : store.blobPath(file.digest)
    }))
  }
}

const weightsOf = ({ files }: Manifest, { store }: StandingDeps): readonly StandingFile[] =>
  files.flatMap(({ name, kind, role, size, digest }) =>
    name === undefined ? [] : [{ name, kind, role, sizeBytes: size, digest, path: store.blobPath(digest) }]
  )

async function factsOf({ files }: Manifest, { store }: StandingDeps): Promise<ModelConfig> {
  const config = files.find(({ kind }) => kind === 'config')
  try {
    const bytes = config && (await readSmallBlob(store, config.digest, MAX_MODEL_CONFIG_BYTES))
    return bytes === undefined ? {} : parseModelConfig(bytes)
  } catch {
    // a publisher's document may differ from ours
    return {}
  }
}
