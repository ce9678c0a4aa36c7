import { HubError, type HubListing } from '@svc/hub'
import { forEachLimited } from '@svc/internal-concurrency'
import {
  type ArtifactState,
  type CopyAnswer,
  type CopyWitness,
  hubCommitOf,
  type Importer,
  type ImportSource,
  isEvictable,
  type Library,
  LibraryError,
  type SourceFiller,
  upstreamName
} from '@svc/library/parts'
import type { Manifest } from '@svc/manifest'
import { hubFailure } from './errors.ts'
import { isListedAs } from './listed-bytes.ts'
import type { OwnersHub, SignedHub } from './owners-hub.ts'

/** Files asked for at once. */
const CONCURRENCY = 4
/** A rate limit is no answer; another time gives one. */
const MAX_WAIT_MS = 10_000

export interface HubCopiesDeps extends Pick<Library, 'store' | 'artifacts'> {
  readonly importer: Pick<Importer, 'bringBack'>
  readonly owners: Pick<OwnersHub, 'now'>
  /** The same, for requests that this daemon's own listeners do not answer. */
  readonly others: Pick<OwnersHub, 'now'>
  readonly sourceOf: (signed: SignedHub, asked: string, listing: HubListing) => ImportSource
}

/** Whether the hub still has the commit that an artifact came from, and its bytes. */
export class HubCopies implements CopyWitness, SourceFiller {
  readonly #deps: HubCopiesDeps

  constructor(deps: HubCopiesDeps) {
    this.#deps = deps
  }

  canFill(artifact: ArtifactState | undefined): boolean {
    return artifact !== undefined && hubCommitOf(artifact.source) !== undefined
  }

  /** The hub lists all weights with their hashes, and gives the first byte of each. */
  async ask(manifest: Manifest, state: ArtifactState, signal: AbortSignal): Promise<readonly CopyAnswer[]> {
    const origin = hubCommitOf(state.source)
    if (origin === undefined) return []
    const place = placeOf(origin)
    try {
      const signed = await this.#deps.others.now()
      const timeouts = { signal, maxRateWaitMs: MAX_WAIT_MS }
      const listing = await signed.hub.listing(origin.repo, origin.revision, timeouts)
      const listed = new Map(listing.files.map((file) => [file.path, file]))
      const weights = manifest.files.filter(isEvictable)
      await forEachLimited(weights, CONCURRENCY, signal, async (file) => {
        const found = listed.get(upstreamName(state.source, file.name))
        if (!(await isListedAs(found, file, this.#deps.store))) throw new OtherFileError(file.name)
        await signed.hub.read(found!, { start: 0, end: Math.min(1, file.size) }, timeouts)
      })
      return [{ ...place, is: 'there' }]
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof OtherFileError) return [{ ...place, is: 'gone', why: error.message }]
      const failure = hubFailure(error)
      if (failure === error && !(error instanceof HubError)) throw error
      return [{ ...place, is: isAnswer(error) ? 'gone' : 'silent', why: (failure as Error).message }]
    }
  }

  /** @throws LibraryError as an import's job */
  async fill(...[request, { signal, onProgress, mayEvict }]: Parameters<SourceFiller['fill']>): Promise<void> {
    const { importer, owners, sourceOf, artifacts } = this.#deps
    const { artifact, manifest, missing } = request
    const origin = artifact && hubCommitOf(artifact.source)
    if (origin === undefined) return
    const absent = new Set(missing)
    const files = manifest.files.filter((file) => isEvictable(file) && absent.has(file.digest))
    if (files.length === 0) return
    try {
      const signed = await owners.now()
      const listing = await signed.hub.listing(origin.repo, origin.revision, { signal })
      const listed = new Map(listing.files.map((file) => [file.path, file]))
      const names = files
        .map((file) => upstreamName(artifact!.source, file.name))
        // another digest would be fetched in vain
        .filter((name, i) => (listed.get(name)?.sha256 ?? files[i]!.digest) === files[i]!.digest)
      await importer.bringBack(sourceOf(signed, origin.repo, listing), new Set(names), {
        signal,
        mayEvict,
        report: ({ filesDone = 0, bytesDone = 0, files: active = [] }) => onProgress({ filesDone, bytesDone, active })
      })
    } catch (error) {
      const failure = hubFailure(error)
      // the hub does not have these bytes
      if (failure instanceof LibraryError && ['E_NOT_IMPORTABLE', 'E_BAD_LISTING'].includes(failure.code))
        await artifacts.setCopy(request.manifestDigest, { ...placeOf(origin), at: undefined })
      throw failure
    }
  }
}

class OtherFileError extends Error {
  constructor(name: string) {
    super(`it does not list these bytes as ${JSON.stringify(name)}`)
  }
}

const placeOf = ({ repo, revision }: { readonly repo: string; readonly revision: string }) =>
  ({ kind: 'hub', where: `${repo}@${revision}` }) as const

/** Whether the hub, or its storage, said something about the file; false if it was not reached. */
function isAnswer(error: unknown): boolean {
  if (!(error instanceof HubError)) return false
  const { reason, details } = error
  if (reason === 'rate-limited' || reason === 'sink') return false
  return reason !== 'unreachable' || (details?.status !== undefined && details.status < 500)
}
