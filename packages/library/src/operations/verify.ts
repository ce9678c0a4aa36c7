import { CasError, type DiskBlobStore, type VerifyOptions } from '@svc/cas'
import { forEachLimited } from '@svc/internal-concurrency'
import {
  type Artifacts,
  companionBlobs,
  isEvictable,
  type Library,
  LibraryError,
  manifestIn,
  type Resolver,
  type UnreadableStateError
} from '@svc/internal-state'
import { type Sha256Digest, tryParseTypedDigest } from '@svc/ref'
import type { Work } from './work.ts'

export type VerifyDeps = Pick<Library, 'resolver' | 'store' | 'documents' | 'repos' | 'artifacts' | 'views' | 'needed'>

const VERIFIED_AT_ONCE = 2

/** What a check found; empty lists for a sound store. */
export interface Findings {
  /** Corrupt blobs, which are in quarantine now. */
  readonly mismatched: readonly Sha256Digest[]
  readonly missing: readonly Sha256Digest[]
  /** Records and blobs that cannot be read, for people. */
  readonly stateErrors: readonly string[]
}

/** Everything, or the manifest or blob with this digest. */
export type VerifyTarget = 'all' | Sha256Digest

/**
 * `all`, the digest of a manifest or blob, or a reference.
 * @throws as `Resolver.resolve` for a reference; LibraryError `E_INVALID` for a malformed digest
 */
export async function verifyTarget(target: string, resolver: Resolver): Promise<VerifyTarget> {
  if (target === 'all') return target
  const digest = tryParseTypedDigest(target)
  if (digest !== undefined) return digest
  if (/^sha256:/i.test(target))
    throw new LibraryError('E_INVALID', 'the target is not a digest: "sha256:" and 64 lower-case hex characters')
  return (await resolver.resolve(target)).manifestDigest
}

/**
 * Re-hashes an artifact, one blob, or everything. Corrupt blobs are moved to quarantine. `all` also reads the whole state,
 * and reports blobs that it names but the store lacks.
 */
export const verify = (
  target: VerifyTarget,
  deps: VerifyDeps,
  work: Pick<Work, 'signal' | 'report'>
): Promise<Findings> => (target === 'all' ? verifyAll(deps, work) : verifyTree(target, deps, work))

/** A blob and, if it is a manifest, the blobs that it lists. */
async function verifyTree(
  digest: Sha256Digest,
  deps: VerifyDeps,
  { signal, report }: Pick<Work, 'signal' | 'report'>
): Promise<Findings> {
  const { store, artifacts, documents } = deps
  const sizes = new Map<Sha256Digest, number>()
  const first = await store.stat(digest)
  sizes.set(digest, first?.sizeBytes ?? 0)
  const isAway = await isAwayNow(artifacts, digest)
  // a blob that is no manifest is verified alone
  for (const file of (await manifestIn(documents, digest))?.files ?? [])
    if (!isAway || !isEvictable(file) || (await store.stat(file.digest)) !== undefined)
      sizes.set(file.digest, file.size)

  const bytesTotal = [...sizes.values()].reduce((sum, size) => sum + size, 0)
  report({ filesDone: 0, filesTotal: sizes.size, bytesDone: 0, bytesTotal })
  const mismatched: Sha256Digest[] = []
  const missing: Sha256Digest[] = []
  const check = async (each: Sha256Digest, options: VerifyOptions): Promise<void> => {
    const { status } = await store.verify(each, options)
    if (status === 'mismatched') mismatched.push(each)
    else if (status === 'missing') missing.push(each)
  }
  let filesDone = 0
  let bytesDone = 0
  const active = new Map<Sha256Digest, number>()
  const reportDone = (): void =>
    report({ filesDone, bytesDone: bytesDone + [...active.values()].reduce((sum, done) => sum + done, 0) })
  await forEachLimited([...sizes], VERIFIED_AT_ONCE, signal, async ([each, size], signal) => {
    const onProgress = (done: number): void => {
      active.set(each, Math.min(done, size))
      reportDone()
    }
    await check(each, { signal, onProgress })
    active.delete(each)
    filesDone++
    bytesDone += size
    reportDone()
  })
  for (const each of await companionBlobs(await artifacts.ifReadable(digest), documents)) await check(each, { signal })
  return { mismatched: mismatched.sort(), missing: missing.sort(), stateErrors: [] }
}

/** Hashes everything. Blobs that cannot be read become `stateErrors`; the others are still reported. */
async function mismatchedOf(
  store: DiskBlobStore,
  { signal, report }: Pick<Work, 'signal' | 'report'>,
  stateErrors: string[]
): Promise<readonly Sha256Digest[]> {
  try {
    const { checked, mismatched } = await store.scrub({
      signal,
      onProgress: ({ blobs, bytes, blobsTotal, bytesTotal }) =>
        report({ filesDone: blobs, filesTotal: blobsTotal, bytesDone: bytes, bytesTotal })
    })
    report({ filesDone: checked, filesTotal: checked })
    return mismatched
  } catch (error) {
    if (!(error instanceof CasError) || error.details.unreadable === undefined) throw error
    for (const digest of error.details.unreadable)
      stateErrors.push(`${digest} cannot be read: ${(error.cause as Error | undefined)?.message ?? error.message}`)
    return error.details.mismatched ?? []
  }
}

/** Evicted weights are not missing. */
async function isAwayNow(artifacts: Artifacts, manifest: Sha256Digest): Promise<boolean> {
  return (await artifacts.ifReadable(manifest))?.away === true
}

async function verifyAll(
  { store, documents, repos, artifacts, views, needed }: VerifyDeps,
  { signal, report }: Pick<Work, 'signal' | 'report'>
): Promise<Findings> {
  const stateErrors: string[] = []
  const mismatched = new Set(await mismatchedOf(store, { signal, report }, stateErrors))
  const missing = new Set<Sha256Digest>()
  const note = (error: UnreadableStateError): void => void stateErrors.push(error.message)
  const need = async (digest: Sha256Digest): Promise<boolean> => {
    if ((await store.stat(digest)) !== undefined) return true
    if (!mismatched.has(digest)) missing.add(digest)
    return false
  }
  const problem = (where: string, error: unknown): void => {
    if (!(error instanceof LibraryError)) throw error
    stateErrors.push(`${where}: ${error.message}`)
  }
  const needManifest = async (where: string, digest: Sha256Digest): Promise<void> => {
    if (!(await need(digest))) return
    try {
      const isAway = await isAwayNow(artifacts, digest)
      for (const file of (await documents.manifest(digest))?.files ?? [])
        if (!isAway || !isEvictable(file)) await need(file.digest)
    } catch (error) {
      problem(where, error)
    }
  }
  for await (const { ns, name, state } of repos.list(note)) {
    signal.throwIfAborted()
    for (const digest of new Set([state.index, ...state.tags.values()])) {
      if (digest === undefined) continue
      if (!(await need(digest))) continue
      try {
        for (const member of (await documents.index(digest)).members) {
          await needManifest(`${ns}/${name}:${member.quant}`, member.manifest)
          await need(member.distribution)
        }
      } catch (error) {
        problem(`${ns}/${name}`, error)
      }
    }
  }
  for await (const _ of views.records(note));
  for await (const artifact of artifacts.list(note)) {
    signal.throwIfAborted()
    // a collection may have removed some of its blobs, so missing ones are no damage
    if (!(await needed.has(artifact.manifestDigest))) continue
    // a pinned import that is running or was interrupted: its missing blobs were never there
    if (artifact.incomplete === true) continue
    await needManifest(`state/artifacts of ${artifact.manifestDigest}`, artifact.manifestDigest)
    if (artifact.record !== undefined) await need(artifact.record)
    for (const digest of await companionBlobs(artifact, documents)) await need(digest)
  }
  return { mismatched: [...mismatched].sort(), missing: [...missing].sort(), stateErrors }
}
