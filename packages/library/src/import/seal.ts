import type { DiskBlobStore } from '@svc/cas'
import type { ArtifactPlan, ManifestEntry, PlannedArtifacts } from '@svc/classify'
import { loopBudget } from '@svc/internal-concurrency'
import { type BlobTree, LEAVES, type Library, LibraryError, oneChunk } from '@svc/internal-state'
import {
  type ArtifactTorrent,
  CONFIG_NAME,
  type IndexMember,
  type Manifest,
  ManifestError,
  type ManifestFile,
  pieceLayersOf,
  type Sealed,
  sealManifest,
  sealModelConfig,
  sealRecord,
  torrentOf
} from '@svc/manifest'
import { leafLayer, type PieceLayers } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { Ingested } from './ingest.ts'

/** One sealed artifact; all its documents are in the store. */
export interface SealedArtifact {
  readonly member: IndexMember
  readonly manifest: Sealed<Manifest>
}

export interface SealContext extends Pick<Library, 'store' | 'leafLayers'> {
  readonly signal: AbortSignal
}

/**
 * Stage 4: writes manifest, piece layers and distribution record of each artifact. Equal entries and annotations give
 * equal bytes. @throws LibraryError `E_NOT_IMPORTABLE` for files that no manifest or torrent can hold
 */
export async function sealArtifacts(
  plan: PlannedArtifacts,
  ingested: Ingested,
  annotations: Readonly<Record<string, string>>,
  context: SealContext
): Promise<SealedArtifact[]> {
  const sealed: SealedArtifact[] = []
  for (const artifact of plan.artifacts) {
    try {
      sealed.push(await sealArtifact(artifact, ingested, annotations, context))
    } catch (cause) {
      if (!(cause instanceof ManifestError)) throw cause
      throw new LibraryError('E_NOT_IMPORTABLE', `the artifact ${artifact.quant} cannot be sealed: ${cause.message}`, {
        cause
      })
    }
  }
  return sealed
}

async function sealArtifact(
  artifact: ArtifactPlan,
  ingested: Ingested,
  annotations: Readonly<Record<string, string>>,
  context: SealContext
): Promise<SealedArtifact> {
  const { store, leafLayers, signal } = context
  const config = sealModelConfig(artifact.modelConfig as Parameters<typeof sealModelConfig>[0])
  await writeDocument(store, config, signal)
  const configTree = await leafLayers.keep({
    digest: config.digest,
    sizeBytes: config.bytes.length,
    attachments: { [LEAVES.name]: leafLayer(config.bytes) }
  })
  const files: ManifestFile[] = [
    { kind: 'config', name: CONFIG_NAME, ...blobFields(configTree) },
    ...artifact.entries.map((entry) => manifestFile(entry, ingested.blobs.get(entry.name)!))
  ]
  const manifest = sealManifest(files, { ...artifact.annotations, ...annotations })
  // for a thousand files, each of these takes 10 to 25 ms: others get their turns in between
  await loopBudget.next('seals')
  const torrent = torrentOf(manifest)
  await loopBudget.next('seals')
  await writeDocument(store, manifest, signal)
  const distribution = await writeRecord(manifest, torrent, context)
  return { member: { quant: artifact.quant, manifest: manifest.digest, distribution }, manifest }
}

/**
 * Writes the piece layers and the distribution record of an artifact whose blobs are here: every node has the same ones.
 * @param known piece layers that need not be computed
 */
export async function writeRecord(
  manifest: Sealed<Manifest>,
  torrent: ArtifactTorrent,
  { store, leafLayers, signal }: SealContext,
  known?: PieceLayers
): Promise<Sha256Digest> {
  const bytes = pieceLayersOf(torrent, await leafLayers.pieceLayers(torrent, { known, signal }))
  const { digest: pieceLayersDigest } = await store.ingest(oneChunk(bytes), { sizeBytes: bytes.length, signal })
  const record = sealRecord({ manifest, pieceLayersDigest })
  await writeDocument(store, record, signal)
  return record.digest
}

export const manifestFile = ({ kind, name, part, role, variant }: ManifestEntry, tree: BlobTree): ManifestFile => ({
  kind,
  name,
  ...blobFields(tree),
  ...(part !== undefined && { part }),
  ...(role !== undefined && { role }),
  ...(variant !== undefined && { variant })
})

const blobFields = ({ digest, sizeBytes, merkleRoot }: BlobTree): Pick<ManifestFile, 'digest' | 'size' | 'bt'> => ({
  digest,
  size: sizeBytes,
  ...(merkleRoot !== undefined && { bt: { merkleRoot } })
})

export async function writeDocument(
  store: DiskBlobStore,
  { bytes, digest }: Sealed<unknown>,
  signal?: AbortSignal
): Promise<void> {
  await store.ingest(oneChunk(bytes), { digest, sizeBytes: bytes.length, ...(signal !== undefined && { signal }) })
}
