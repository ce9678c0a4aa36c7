import type { DiskBlobStore } from '@svc/cas'
import { type FileHere, type ImportSource, LibraryError, readAtOf } from '@svc/library/parts'
import { type Anchor, TRUST_SHIFT } from './anchor.ts'
import type { ListedTorrent } from './listing.ts'
import type { Pulled, PulledFile } from './pull.ts'
import type { V1Seed } from './seeds.ts'

/**
 * The result of a pull as a source of the ordinary pipeline: every file is a blob already, so only members of tars and
 * texts are read. Annotated like an import from the hub, because the sealed
 * documents are the same.
 */
export function catalogSource(
  store: DiskBlobStore,
  entry: ListedTorrent,
  anchor: Anchor,
  pulled: Pulled,
  seed: V1Seed | undefined
): Omit<ImportSource, 'close'> {
  const revision = anchor.revision
  return {
    kind: 'catalog',
    files: pulled.files.map((file) => storedFile(store, file)),
    annotations: { 'svc.hf.repo': anchor.repo, ...(revision && { 'svc.hf.revision': revision }) },
    fetchUnrecognized: false,
    concurrency: 2,
    provenance: () => anchor.provenance,
    origin: {
      kind: 'catalog',
      repo: entry.repo,
      ...(revision && { revision }),
      ...(seed && { bittorrentV1: { ...seed } })
    },
    warnings: [...(anchor.kind === 'catalog' ? [TRUST_SHIFT] : []), ...pulled.warnings]
  }
}

function storedFile(store: DiskBlobStore, { path, sizeBytes, digest, tree, isSeen }: PulledFile): FileHere {
  return {
    name: path,
    sizeBytes,
    digest,
    ...(tree && { tree }),
    stored: { isSeen },
    peek: () => async (offset, lengthBytes) => {
      const reader = await store.open(digest)
      try {
        return await readAtOf(reader.fd!, sizeBytes)(offset, lengthBytes)
      } finally {
        await reader.close()
      }
    },
    open: async (signal) => {
      const { status } = await store.verify(digest, { signal })
      if (status !== 'ok') throw new LibraryError('E_CORRUPTION', `the blob of "${path}" is ${status}`)
      const reader = await store.open(digest)
      return { fd: reader.fd!, unchanged: async () => undefined, close: () => reader.close() }
    }
  }
}
