import type { DiskBlobStore } from '@svc/cas'
import type { OwnersChoice } from '@svc/classify'
import type { CompanionFile, Companions, Manifest, ManifestFile } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { type KeptCompanions, keptCompanions, type ReadDeps } from './companions.ts'
import type { Documents } from './documents.ts'
import type { Resolved, Resolver } from './resolve.ts'
import type { StoreState } from './state.ts'

export interface OpenDeps extends Pick<StoreState, 'store' | 'documents' | 'artifacts'> {
  readonly resolver: Resolver
}

/** A blob that is here; with the manifest's metadata if the manifest is here. */
interface PresentBlob extends Partial<Pick<ManifestFile, 'name' | 'kind' | 'role' | 'variant' | 'part' | 'runtime'>> {
  readonly digest: Sha256Digest
  /** Absolute. */
  readonly path: string
  readonly size: number
}

interface OpenedCompanion {
  /** At the source. */
  readonly path: string
  readonly digest: Sha256Digest
  readonly size: number
  /** The owner's own, which never leaves this store. */
  readonly own?: true
}

/** The companions of an artifact, as far as they are here (spec doc.21, add.48). */
interface OpenedCompanions {
  /** Of the document that lists them. */
  readonly digest: Sha256Digest
  readonly files: readonly (OpenedCompanion & { readonly blobPath: string })[]
  /** Their bytes are lost; absent when none are. */
  readonly missing?: readonly OpenedCompanion[]
  /** Files of the source that are not kept. */
  readonly omitted: Companions['omitted']
  /** What the owner chose at the latest import under this name; absent for everything. */
  readonly choice?: OwnersChoice
  readonly warnings?: readonly string[]
}

/** A model whose files are here, or some of them. */
interface OpenedModel extends Resolved {
  /** The index blob, the manifest blob, then its files in order; those that are here. */
  readonly files: readonly PresentBlob[]
  /** Absent when nothing is missing. */
  readonly missing?: readonly Sha256Digest[]
  readonly companions?: OpenedCompanions
}

interface ArtifactPresence {
  readonly manifest: Manifest | undefined
  readonly present: readonly PresentBlob[]
  /** Digests of absent blobs, without duplicates: index, manifest, then the manifest's files. */
  readonly missing: readonly Sha256Digest[]
}

/** Looks up which blobs of an artifact are in the store; never fetches (spec route.4 to route.6). */
export async function presenceOf(
  store: Pick<DiskBlobStore, 'stat' | 'blobPath'>,
  documents: Documents,
  manifestDigest: Sha256Digest,
  indexDigest?: Sha256Digest
): Promise<ArtifactPresence> {
  const manifest = await documents.manifest(manifestDigest)
  const wanted: { readonly digest: Sha256Digest; readonly file?: ManifestFile }[] = []
  if (indexDigest !== undefined) wanted.push({ digest: indexDigest })
  wanted.push({ digest: manifestDigest })
  for (const file of manifest?.files ?? []) wanted.push({ digest: file.digest, file })

  const present: PresentBlob[] = []
  const missing = new Set<Sha256Digest>()
  for (const { digest, file } of wanted) {
    const info = await store.stat(digest)
    // with another size it is not the right blob, whatever its name: ensure fetches the right one
    if (info === undefined || (file !== undefined && info.sizeBytes !== file.size)) missing.add(digest)
    else
      present.push({
        digest,
        path: store.blobPath(digest),
        size: info.sizeBytes,
        ...(file !== undefined && metadata(file))
      })
  }
  return { manifest, present, missing: [...missing] }
}

/** The files of a model. @throws as `Resolver.resolve`; LibraryError `E_CORRUPTION` for a manifest that is not valid. */
export async function openRef(ref: string, deps: OpenDeps): Promise<OpenedModel> {
  return openResolved(await deps.resolver.resolve(ref), deps)
}

/** As {@link openRef}, of what its reference named. */
export async function openResolved(resolved: Resolved, deps: ReadDeps): Promise<OpenedModel> {
  const { store, documents } = deps
  const { manifestDigest, indexDigest } = resolved
  const { manifest, present, missing } = await presenceOf(store, documents, manifestDigest, indexDigest)
  const kept = manifest && (await keptCompanions(resolved, { ...manifest, digest: manifestDigest }, deps))
  return {
    ...resolved,
    files: [...present],
    ...(missing.length > 0 && { missing: [...missing] }),
    ...(kept?.digest !== undefined && { companions: companionsOf(kept, store) })
  }
}

function companionsOf(
  { digest, files, missing, own, omitted, choice, warnings }: KeptCompanions,
  store: Pick<DiskBlobStore, 'blobPath'>
): OpenedCompanions {
  const rowOf = ({ path, size, digest }: CompanionFile) => ({
    path,
    digest,
    size,
    ...(own.has(path) && { own: true as const })
  })
  return {
    digest,
    files: files.map((file) => ({ ...rowOf(file), blobPath: store.blobPath(file.digest) })),
    ...(missing.length > 0 && { missing: missing.map(rowOf) }),
    omitted: [...omitted],
    ...(choice !== undefined && { choice }),
    ...(warnings.length > 0 && { warnings: [...warnings] })
  }
}

const metadata = ({ name, kind, role, variant, part, runtime }: ManifestFile): Partial<PresentBlob> => ({
  name,
  kind,
  ...(role !== undefined && { role }),
  ...(variant !== undefined && { variant }),
  ...(part !== undefined && { part }),
  ...(runtime !== undefined && { runtime })
})
