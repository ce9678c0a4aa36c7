import type { BlobStore, PartialBlob } from '@svc/cas'
import type { FetchContext, ImportSource, SourceFile } from '../../import/source.ts'
import { type Anchor, TRUST_SHIFT } from './anchor.ts'
import type { ListedTorrent } from './listing.ts'
import type { Pulled, PulledFile } from './pull.ts'
import type { V1Seed } from './seeds.ts'

const CHUNK_BYTES = 1 << 20

/**
 * The result of a pull as a source of the ordinary pipeline: every file is a blob already, so entries are not fetched
 * again, and only members of tars and texts are read. Annotated like an import from the hub, because the sealed
 * documents are the same.
 */
export function catalogSource(
  store: BlobStore,
  entry: ListedTorrent,
  anchor: Anchor,
  pulled: Pulled,
  seed: V1Seed | undefined
): ImportSource {
  const revision = anchor.revision
  return {
    kind: 'catalog',
    files: pulled.files.map((file) => storedFile(store, file)),
    annotations: { 'svc.hf.repo': anchor.repo, ...(revision && { 'svc.hf.revision': revision }) },
    fetchUnrecognised: false,
    concurrency: 2,
    provenance: () => anchor.provenance,
    origin: {
      kind: 'catalog',
      repo: entry.repo,
      ...(revision && { revision }),
      ...(seed && { bittorrentV1: { ...seed } })
    },
    hints: { trackers: [], webseeds: [], peers: [] },
    warnings: [...(anchor.kind === 'catalog' ? [TRUST_SHIFT] : []), ...pulled.warnings],
    close: async () => {}
  }
}

function storedFile(store: BlobStore, { path, sizeBytes, digest, tree, isSeen }: PulledFile): SourceFile {
  return {
    name: path,
    sizeBytes,
    digest,
    ...(tree && { tree }),
    stored: { isSeen },
    open: async () => ({
      kind: 'remote',
      fetch: (into, context) => copyBlob(store, digest, into, context),
      close: async () => {}
    })
  }
}

async function copyBlob(
  store: BlobStore,
  digest: PulledFile['digest'],
  into: PartialBlob,
  { signal, onProgress }: FetchContext
): Promise<void> {
  const reader = await store.open(digest)
  const buffer = new Uint8Array(Math.min(CHUNK_BYTES, reader.sizeBytes))
  try {
    for (let offset = 0; offset < reader.sizeBytes; ) {
      signal.throwIfAborted()
      const count = await reader.read(buffer, offset)
      if (count === 0) throw new RangeError('a blob is shorter than it was')
      if (!into.ranges().some(([from, to]) => from <= offset && offset + count <= to)) {
        await into.write(offset, buffer.subarray(0, count))
      }
      offset += count
      onProgress(offset)
    }
  } finally {
    await reader.close()
  }
}
