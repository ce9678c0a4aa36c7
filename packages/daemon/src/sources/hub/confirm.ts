import type { AdoptBody } from '@svc/client/protocol'
import { type Hub, HubError, type HubFile } from '@svc/hub'
import type { Clock } from '@svc/internal-clock'
import type { ManifestFile } from '@svc/manifest'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactState } from '../../library/artifacts.ts'
import { isEvictable } from '../../library/eviction.ts'
import type { Library } from '../../library/library.ts'
import { upstreamName } from '../../library/origin.ts'
import { probeAccess } from './access-probe.ts'
import { isListedAs } from './listed-bytes.ts'

/** `public`: the hub serves the repository, with these files at this commit, without a token. */
export type HubAnswer = 'public' | 'not-public' | 'other-files' | 'no-answer'

/** After the hub did not answer, it is not asked again within this time. */
const SILENCE_MS = 60_000
/** Per start; the next start continues. */
const MAX_QUESTIONS = 1_000

/** Asks the hub without a token, even if there is one, what is public (spec add.37). @param hub without a token */
export function createConfirmation(hub: Pick<Hub, 'listing' | 'probe'>, clock: Pick<Clock, 'monotonic'>) {
  let silentSince: number | undefined
  return {
    /** @param isListed whether a file of `names` has the bytes that the hub lists. @throws only for an abort */
    async ask(
      repo: string,
      commit: string,
      isListed: (listed: HubFile | undefined, name: string) => Promise<boolean>,
      names: readonly string[],
      signal: AbortSignal
    ): Promise<HubAnswer> {
      if (silentSince !== undefined && clock.monotonic() - silentSince < SILENCE_MS) return 'no-answer'
      try {
        const listing = await hub.listing(repo, commit, { signal, maxRateWaitMs: 0 })
        if (listing.restricted || listing.commit !== commit) return 'not-public'
        await probeAccess(hub, listing, { signal, maxRateWaitMs: 0 })
        const files = new Map(listing.files.map((file) => [file.path, file]))
        for (const name of names) if (!(await isListed(files.get(name), name))) return 'other-files'
        return 'public'
      } catch (error) {
        signal.throwIfAborted()
        if (!(error instanceof HubError)) throw error
        if (error.code === 'E_UNKNOWN_REF' || error.code === 'E_SOURCE_FORBIDDEN') return 'not-public'
        silentSince = clock.monotonic()
        return 'no-answer'
      }
    }
  }
}

export type HubConfirmation = ReturnType<typeof createConfirmation>

/** Whether a listed file has the hash that a cache gives it. */
export const isClaimed = (
  listed: HubFile | undefined,
  { sha256, gitSha1 }: Pick<AdoptBody['files'][number], 'sha256' | 'gitSha1'>
): boolean =>
  listed !== undefined &&
  (listed.sha256 !== undefined ? listed.sha256 === sha256 : gitSha1 !== undefined && listed.gitBlobSha1 === gitSha1)

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
    if (state.provenance.access === 'unknown' && state.source.kind === 'hf' && state.incomplete !== true)
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
): Promise<HubAnswer> {
  const { repo, revision, companions: own } = source
  const manifest = await documents.manifest(manifestDigest).catch(() => undefined)
  if (repo === undefined || revision === undefined || manifest === undefined) return 'other-files'
  const files = new Map<string, Pick<ManifestFile, 'digest' | 'size'>>()
  for (const file of manifest.files.filter(isEvictable)) files.set(upstreamName(source, file.name), file)
  if (files.size === 0) return 'other-files'
  // companions leave with them, and files of a cache may have been changed or added
  for (const digest of [...(own === undefined ? [] : [own]), ...Object.values(companions)]) {
    const document = await documents.companions(digest).catch(() => undefined)
    if (document === undefined) return 'other-files'
    for (const file of document.files) {
      // of two contents under one name, one is not the hub's
      if ((files.get(file.path)?.digest ?? file.digest) !== file.digest) return 'other-files'
      files.set(file.path, file)
    }
  }
  const isListed = (listed: HubFile | undefined, name: string): Promise<boolean> =>
    isListedAs(listed, files.get(name)!, store)
  return confirmation.ask(repo, revision, isListed, [...files.keys()], signal)
}
