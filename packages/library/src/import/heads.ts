import {
  type GgufIdentityFound,
  type GgufWalk,
  headsToRead,
  type ReadAt,
  readGgufIdentity,
  walkGgufHead
} from '@svc/classify'
import { forEachLimited } from '@svc/internal-concurrency'
import { type ArtifactSource, type Offload, readAtOf, sourceKey } from '@svc/internal-state'
import { LRUCache } from 'lru-cache'
import { type ImportSource, isRemote, type SourceFile } from './source.ts'

/** Of a listing, before the import; a larger one has the names of the others alone (spec rec.26). */
const MAX_HEADS = 32
const READS_AT_ONCE = 8
/** A plan and the import that follows it ask the hub once. */
const MAX_KNOWN = 4_096

/** What sources said, unverified: by the source and the digest that it lists. */
const known = new LRUCache<string, GgufIdentityFound>({ max: MAX_KNOWN })

/** A header, by the name of its file at the source. */
export interface ReadHead {
  readonly wantsQuant: boolean
  readonly head: GgufIdentityFound
}

/** The headers of a source's GGUFs that tell what these are, by upstream name: without those that it cannot give before the import. */
export async function headsOf(
  { files, origin }: Pick<ImportSource, 'files' | 'origin'>,
  offload: Offload,
  signal: AbortSignal
): Promise<Map<string, ReadHead>> {
  const byName = new Map(files.map((file) => [file.name, file]))
  const reads = headsToRead(byName.keys(), MAX_HEADS)
  const found = new Map<string, ReadHead>()
  await forEachLimited(reads, READS_AT_ONCE, signal, async ({ name, quant }, signal) => {
    const head = await headOf(byName.get(name)!, origin, { quant, offload }, signal)
    if (head !== undefined) found.set(name, { wantsQuant: quant, head })
  })
  return found
}

async function headOf(
  file: SourceFile,
  origin: ArtifactSource,
  { quant, offload }: { readonly quant: boolean; readonly offload: Offload },
  signal: AbortSignal
): Promise<GgufIdentityFound | undefined> {
  const key = isRemote(file) ? keyOf(file, origin, quant) : undefined
  const before = key === undefined ? undefined : known.get(key)
  if (before !== undefined) return before
  const head = await withStartOf(file, signal, (readAt) =>
    readGgufIdentity(readAt, file.sizeBytes, { quant }, walkIn(offload))
  )
  if (key !== undefined && head !== undefined) known.set(key, head)
  return head
}

/** Longer starts are walked in a thread: their author decides how long that takes. */
const MAX_HERE_BYTES = 64 << 10

/** Walks over the start of a GGUF without blocking the event loop. */
export const walkIn =
  (offload: Offload) =>
  (head: Uint8Array, sizeBytes: number): GgufWalk | Promise<GgufWalk> =>
    head.length <= MAX_HERE_BYTES ? walkGgufHead(head, sizeBytes) : offload.call('walk', { head, sizeBytes })

function keyOf({ digest, readAs = digest }: SourceFile, origin: ArtifactSource, quant: boolean): string | undefined {
  return readAs === undefined ? undefined : `${sourceKey(origin)} ${readAs} ${quant}`
}

/** What a source said about a header turned out to be wrong: it is asked again. */
export function forgetHead(file: SourceFile, origin: ArtifactSource): void {
  for (const quant of [true, false]) known.delete(keyOf(file, origin, quant) ?? '')
}

/** Random access to a file before the import; `use` is not called for one that cannot be read yet. */
export async function withStartOf<T>(
  file: SourceFile,
  signal: AbortSignal,
  use: (readAt: ReadAt) => Promise<T>
): Promise<T | undefined> {
  if (file.peek !== undefined) return use(file.peek(signal))
  if (isRemote(file)) return undefined
  const opened = await file.open(signal)
  try {
    return await use(readAtOf(opened.fd, file.sizeBytes))
  } finally {
    await opened.close()
  }
}
