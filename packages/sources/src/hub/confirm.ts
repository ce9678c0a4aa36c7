import type { DiskBlobStore } from '@svc/cas'
import { type Hub, HubError, type HubFile } from '@svc/hub'
import type { Clock } from '@svc/internal-clock'
import {
  type ArtifactState,
  type ClaimedFile,
  type ClaimedOrigin,
  type ConfirmPublic,
  givenCompanions,
  isEvictable,
  type Library,
  type PublicAnswer,
  upstreamName
} from '@svc/library/parts'
import type { ManifestFile } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import { probeAccess } from './access-probe.ts'
import { isListedAs } from './listed-bytes.ts'

/** After the hub did not answer, it is not asked again within this time. */
const SILENCE_MS = 60_000
/** Per start; the next start continues. */
const MAX_QUESTIONS = 1_000

/** Asks the hub without a token, even if there is one, what is public (spec add.37). @param hub without a token */
export function createConfirmation(hub: Pick<Hub, 'listing' | 'probe'>, clock: Pick<Clock, 'monotonic'>) {
  let silentSince: number | undefined
  /** @param areListed whether the files have the bytes that the hub lists. @throws an abort, or the error of `areListed` */
  const ask = async (
    { repo, revision }: ClaimedOrigin,
    areListed: (listed: readonly HubFile[]) => Promise<boolean>,
    signal: AbortSignal
  ): Promise<PublicAnswer> => {
    if (silentSince !== undefined && clock.monotonic() - silentSince < SILENCE_MS) return 'no-answer'
    try {
      const listing = await hub.listing(repo, revision, { signal, maxRateWaitMs: 0 })
      if (listing.restricted || (revision !== undefined && listing.commit !== revision)) return 'not-public'
      await probeAccess(hub, listing, { signal, maxRateWaitMs: 0 })
      return (await areListed(listing.files)) ? 'public' : 'other-files'
    } catch (error) {
      signal.throwIfAborted()
      if (!(error instanceof HubError)) throw error
      if (error.code === 'E_UNKNOWN_REF' || error.code === 'E_SOURCE_FORBIDDEN') return 'not-public'
      silentSince = clock.monotonic()
      return 'no-answer'
    }
  }
  const confirm: ConfirmPublic = (origin, files, signal) =>
    ask(origin, async (listed) => areClaimed(listed, await files), signal)
  return { ask, confirm }
}

export type HubConfirmation = ReturnType<typeof createConfirmation>

/** Whether the hub lists all of the files, at least one. */
function areClaimed(listed: readonly HubFile[], files: readonly ClaimedFile[]): boolean {
  const byName = new Map(listed.map((file) => [file.path, file]))
  const digests = new Set(listed.map(({ sha256, gitBlobSha1 }) => sha256 ?? gitBlobSha1 ?? ''))
  return files.length > 0 && files.every((file) => isClaimed(file, byName, digests))
}

function isClaimed(
  { name, sha256 = 'none', gitSha1 = 'none' }: ClaimedFile,
  byName: ReadonlyMap<string, HubFile>,
  digests: ReadonlySet<string>
): boolean {
  if (name === undefined) return digests.has(sha256) || digests.has(gitSha1)
  const there = byName.get(name)
  return there !== undefined && (there.sha256 === undefined ? there.gitBlobSha1 === gitSha1 : there.sha256 === sha256)
}

export interface ConfirmDeps extends Pick<Library, 'artifacts' | 'documents' | 'store' | 'log'> {
  /** An artifact may be given to others now. */
  readonly onConfirmed: (manifestDigest: Sha256Digest) => Promise<void>
}

/**
 * Asks the hub about every artifact of unknown access, such as one adopted without a connection. One request at a time,
 * and none after the hub did not answer.
 */
export async function confirmUnknown(
  confirmation: HubConfirmation,
  deps: ConfirmDeps,
  signal: AbortSignal
): Promise<void> {
  const { artifacts, log } = deps
  const open: ArtifactState[] = []
  for await (const state of artifacts.list(() => undefined, { cached: true }))
    if (state.provenance.access === 'unknown' && state.source.repo !== undefined && state.incomplete !== true)
      open.push(state)
  let confirmed = 0
  for (const state of open.slice(0, MAX_QUESTIONS)) {
    const word = await askAbout(confirmation, state, deps, signal)
    if (word === 'no-answer') break
    if (word !== 'public') continue
    await artifacts.confirmPublic(state.manifestDigest)
    await deps.onConfirmed(state.manifestDigest)
    confirmed++
  }
  if (open.length > 0)
    log.info(
      { confirmed, unknown: open.length - confirmed },
      'asked the hub, without a token, which of its models are public; the others are withheld'
    )
}

async function askAbout(
  confirmation: HubConfirmation,
  { manifestDigest, source, companions = {} }: ArtifactState,
  { documents, store }: ConfirmDeps,
  signal: AbortSignal
): Promise<PublicAnswer> {
  const { kind, repo, revision, companions: own } = source
  const manifest = await documents.manifest(manifestDigest).catch(() => undefined)
  const isOfCommit = kind === 'hf' && revision !== undefined
  if (repo === undefined || manifest === undefined || !(isOfCommit || kind === 'local')) return 'other-files'
  const files = new Map<string, Pick<ManifestFile, 'digest' | 'size'>>()
  // of a commit, all other files were compared with its hashes; the entry `config` is made here
  const asked = manifest.files.filter((file) => (isOfCommit ? isEvictable(file) : file.kind !== 'config'))
  for (const file of asked) files.set(upstreamName(source, file.name), file)
  if (files.size === 0) return 'other-files'
  // companions leave with them, and files of a cache may have been changed or added
  for (const digest of [...(own === undefined ? [] : [own]), ...Object.values(companions)]) {
    const document = await documents.companions(digest).catch(() => undefined)
    if (document === undefined) return 'other-files'
    for (const file of givenCompanions(document, { source })?.document.files ?? []) {
      // of two contents under one name, one is not the hub's
      if ((files.get(file.path)?.digest ?? file.digest) !== file.digest) return 'other-files'
      files.set(file.path, file)
    }
  }
  const areListed = async (listed: readonly HubFile[]): Promise<boolean> => {
    const byName = new Map(listed.map((file) => [file.path, file]))
    for (const [name, file] of files) {
      const candidates = isOfCommit ? [byName.get(name)] : listed
      if (!(await isOneOf(candidates, file, store))) return false
    }
    return true
  }
  return confirmation.ask({ repo, revision: isOfCommit ? revision : undefined }, areListed, signal)
}

async function isOneOf(
  listed: readonly (HubFile | undefined)[],
  file: Pick<ManifestFile, 'digest' | 'size'>,
  store: DiskBlobStore
): Promise<boolean> {
  for (const each of listed) if (each?.sizeBytes === file.size && (await isListedAs(each, file, store))) return true
  return false
}
