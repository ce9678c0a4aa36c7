import type { DiskBlobStore } from '@svc/cas'
import type { OpenCompanions, OpenFile, OpenResult } from '@svc/client/protocol'
import type { CompanionFile, Manifest, ManifestFile } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { type KeptCompanions, keptCompanions } from './companions.ts'
import type { Documents } from './documents.ts'
import type { Resolved, Resolver } from './resolve.ts'
import type { StoreState } from './state.ts'

export interface OpenDeps extends Pick<StoreState, 'store' | 'documents' | 'artifacts'> {
  readonly resolver: Resolver
}

export interface ArtifactPresence {
  readonly manifest: Manifest | undefined
  readonly present: readonly OpenFile[]
  /** Digests of absent blobs, without duplicates: index, manifest, then the manifest's files. */
  readonly missing: readonly Sha256Digest[]
}

/** Looks up which blobs of an artifact are in the store; never fetches (spec route.4 to route.6). */
export async function presenceOf(
  store: DiskBlobStore,
  documents: Documents,
  manifestDigest: Sha256Digest,
  indexDigest?: Sha256Digest
): Promise<ArtifactPresence> {
  const manifest = await documents.manifest(manifestDigest)
  const wanted: { readonly digest: Sha256Digest; readonly file?: ManifestFile }[] = []
  if (indexDigest !== undefined) wanted.push({ digest: indexDigest })
  wanted.push({ digest: manifestDigest })
  for (const file of manifest?.files ?? []) wanted.push({ digest: file.digest, file })

  const present: OpenFile[] = []
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

/** GET /v1/open. @throws as `Resolver.resolve`; DaemonError `E_CORRUPTION` for a manifest that is not valid. */
export async function openRef(ref: string, deps: OpenDeps): Promise<OpenResult & Resolved> {
  const { resolver, store, documents } = deps
  const resolved = await resolver.resolve(ref)
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
  { digest, files, missing, own, omitted, warnings }: KeptCompanions,
  store: Pick<DiskBlobStore, 'blobPath'>
): OpenCompanions {
  const rowOf = ({ path, size, digest }: CompanionFile) => ({ path, digest, size, ...(own.has(path) && { own: true }) })
  return {
    digest,
    files: files.map((file) => ({ ...rowOf(file), blobPath: store.blobPath(file.digest) })),
    ...(missing.length > 0 && { missing: missing.map(rowOf) }),
    omitted: [...omitted],
    ...(warnings.length > 0 && { warnings: [...warnings] })
  }
}

const metadata = ({ name, kind, role, variant, part, runtime }: ManifestFile): Partial<OpenFile> => ({
  name,
  kind,
  ...(role !== undefined && { role }),
  ...(variant !== undefined && { variant }),
  ...(part !== undefined && { part }),
  ...(runtime !== undefined && { runtime })
})
