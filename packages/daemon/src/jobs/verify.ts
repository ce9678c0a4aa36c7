import { CasError, type DiskBlobStore, type VerifyOptions } from '@svc/cas'
import type { Job } from '@svc/client/protocol'
import { forEachLimited } from '@svc/internal-concurrency'
import { type Sha256Digest, tryParseTypedDigest } from '@svc/ref'
import { DaemonError } from '../errors.ts'
import type { Artifacts } from '../library/artifacts.ts'
import { manifestIn } from '../library/blob-index.ts'
import { companionBlobs } from '../library/companions.ts'
import { isEvictable } from '../library/eviction.ts'
import type { Library } from '../library/library.ts'
import type { Resolver } from '../library/resolve.ts'
import type { UnreadableStateError } from '../library/strict.ts'
import type { JobContext, JobOutcome } from './job-work.ts'
import type { JobRegistry } from './registry.ts'

export interface VerifyDeps
  extends Pick<Library, 'resolver' | 'store' | 'documents' | 'repos' | 'artifacts' | 'views' | 'needed'> {
  readonly jobs: JobRegistry
}

const VERIFIED_AT_ONCE = 2

interface Findings {
  readonly mismatched: readonly Sha256Digest[]
  readonly missing: readonly Sha256Digest[]
  readonly stateErrors: readonly string[]
}

/**
 * POST /v1/verify: re-hashes an artifact (by reference or manifest digest), one blob, or everything. Corrupt blobs are
 * moved to quarantine. `all` also reads the whole state, and reports blobs that it names but the store lacks.
 * @throws as `Resolver.resolve` for a reference; DaemonError `E_BAD_REQUEST` for a malformed digest
 */
export async function verify(target: string, deps: VerifyDeps): Promise<Job> {
  const { jobs } = deps
  if (target === 'all')
    return jobs.start({ kind: 'verify', ref: target, target }, (context) => verifyAll(deps, context))
  const digest = await targetDigest(target, deps.resolver)
  return jobs.start({ kind: 'verify', ref: target, target: digest }, (context) => verifyTree(digest, deps, context))
}

async function targetDigest(target: string, resolver: Resolver): Promise<Sha256Digest> {
  const digest = tryParseTypedDigest(target)
  if (digest !== undefined) return digest
  if (/^sha256:/i.test(target))
    throw new DaemonError('E_BAD_REQUEST', 'the target is not a digest: "sha256:" and 64 lower-case hex characters')
  return (await resolver.resolve(target)).manifestDigest
}

/** A blob and, if it is a manifest, the blobs that it lists. */
async function verifyTree(digest: Sha256Digest, deps: VerifyDeps, { signal, update }: JobContext): Promise<JobOutcome> {
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
  update({ filesDone: 0, filesTotal: sizes.size, bytesDone: 0, bytesTotal })
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
  const report = (): void =>
    update({ filesDone, bytesDone: bytesDone + [...active.values()].reduce((sum, done) => sum + done, 0) })
  await forEachLimited([...sizes], VERIFIED_AT_ONCE, signal, async ([each, size], signal) => {
    const onProgress = (done: number): void => {
      active.set(each, Math.min(done, size))
      report()
    }
    await check(each, { signal, onProgress })
    active.delete(each)
    filesDone++
    bytesDone += size
    report()
  })
  for (const each of await companionBlobs(await artifacts.soundState(digest), documents)) await check(each, { signal })
  return outcome({ mismatched: mismatched.sort(), missing: missing.sort(), stateErrors: [] })
}

/** Hashes everything. Blobs that cannot be read become `stateErrors`; the others are still reported. */
async function mismatchedOf(
  store: DiskBlobStore,
  { signal, update }: Pick<JobContext, 'signal' | 'update'>,
  stateErrors: string[]
): Promise<readonly Sha256Digest[]> {
  try {
    const report = await store.scrub({
      signal,
      onProgress: ({ blobs, bytes, blobsTotal, bytesTotal }) =>
        update({ filesDone: blobs, filesTotal: blobsTotal, bytesDone: bytes, bytesTotal })
    })
    update({ filesDone: report.checked, filesTotal: report.checked })
    return report.mismatched
  } catch (error) {
    if (!(error instanceof CasError) || error.details.unreadable === undefined) throw error
    for (const digest of error.details.unreadable)
      stateErrors.push(`${digest} cannot be read: ${(error.cause as Error | undefined)?.message ?? error.message}`)
    return error.details.mismatched ?? []
  }
}

/** Evicted weights are not missing. */
async function isAwayNow(artifacts: Artifacts, manifest: Sha256Digest): Promise<boolean> {
  return (await artifacts.soundState(manifest))?.away === true
}

async function verifyAll(
  { store, documents, repos, artifacts, views, needed }: VerifyDeps,
  { signal, update }: JobContext
): Promise<JobOutcome> {
  const stateErrors: string[] = []
  const mismatched = new Set(await mismatchedOf(store, { signal, update }, stateErrors))
  const missing = new Set<Sha256Digest>()
  const note = (error: UnreadableStateError): void => void stateErrors.push(error.message)
  const need = async (digest: Sha256Digest): Promise<boolean> => {
    if ((await store.stat(digest)) !== undefined) return true
    if (!mismatched.has(digest)) missing.add(digest)
    return false
  }
  const problem = (where: string, error: unknown): void => {
    if (!(error instanceof DaemonError)) throw error
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
  return outcome({ mismatched: [...mismatched].sort(), missing: [...missing].sort(), stateErrors })
}

function outcome({ mismatched, missing, stateErrors }: Findings): JobOutcome {
  if (mismatched.length + missing.length + stateErrors.length === 0) return { verify: {} }
  const counts = [
    mismatched.length > 0 && `${mismatched.length} corrupt (moved to quarantine)`,
    missing.length > 0 && `${missing.length} missing`,
    stateErrors.length > 0 && `${stateErrors.length} state errors`
  ].filter((text) => text !== false)
  return {
    verify: { mismatched: [...mismatched], missing: [...missing], stateErrors: [...stateErrors] },
    error: { code: 'E_VERIFY_FAILED', message: `the store is damaged: ${counts.join(', ')}` }
  }
}
