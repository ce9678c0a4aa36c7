import { CasError } from '@svc/cas'
import { errnoName, isNoSpace } from '@svc/internal-files'
import { LibraryError, type SwarmHints } from '@svc/library/parts'
import type { ArtifactTorrent } from '@svc/manifest'
import type { PieceLayers } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { TorrentProgress } from '@svc/swarm'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import { type FetchTimeouts, followFetch } from './followed-fetch.ts'

export interface FetchRequest {
  readonly torrent: ArtifactTorrent
  readonly layers: PieceLayers | undefined
  readonly hints: SwarmHints
  /** Upload verified bytes in the meantime. */
  readonly upload: boolean
  /** See {@link JoinOptions.quiet}. */
  readonly quiet?: boolean
  /** The manifest, kept out of the store until the signature of its model was checked: nothing is uploaded meanwhile. */
  readonly heldManifest?: Uint8Array | undefined
  /** It was never complete: what is here of it may have other merkle roots. */
  readonly checksRoots?: boolean
}

export interface FetchProgress {
  /** Number of blobs that this fetch has stored. */
  readonly blobsDone: number
  /** Bytes of the torrent that have come: verified ones, and blocks of pieces under way. */
  readonly bytesDone: number
  /** Those that stay whatever happens. */
  readonly verifiedBytes: number
  readonly peers: number
  readonly sources: number
  readonly rateBytesPerSecond: number
}

export interface ArtifactFetchContext extends FetchTimeouts {
  readonly signal: AbortSignal
  readonly onProgress: (progress: FetchProgress) => void
}

const MAX_WARNINGS = 50

/**
 * Fetches the blobs that the store lacks: resolves when all are durable and have the right SHA-256. Verified bytes are
 * kept after a failure. @returns warnings that name unusable sources. @throws LibraryError `E_SOURCE_UNAVAILABLE`;
 * `E_NOT_IMPORTABLE` (every source sent bad data, or the manifest contradicts itself); `E_NO_SPACE`; the signal's
 * reason
 */
export async function fetchArtifact(
  artifacts: ArtifactSwarm,
  request: FetchRequest,
  context: ArtifactFetchContext
): Promise<readonly string[]> {
  const { torrent, layers, hints, heldManifest } = request
  const upload = request.upload && heldManifest === undefined
  const blobs = new Set<Sha256Digest>()
  const warnings = new Set<string>()
  let lied = false
  const wrong = Promise.withResolvers<never>()
  wrong.promise.catch(() => undefined)
  const joined = await artifacts.join(torrent, {
    layers,
    hints,
    upload,
    ...(request.quiet && { quiet: true }),
    seedOnly: false,
    heldManifest,
    checksRoots: request.checksRoots,
    onBlob: (digest) => blobs.add(digest),
    onWrong: (path) => wrong.reject(wrongAtTheSource(path)),
    onWarning: ({ kind, source, message, lied: proven }) => {
      lied ||= proven === true
      if (warnings.size < MAX_WARNINGS && (kind === 'peer' || kind === 'webseed'))
        warnings.add(`${kind} ${source}: ${message}`)
    }
  })
  const { handle } = joined
  const report = reporting(blobs, context)
  try {
    await followFetch(
      {
        torrent: handle,
        done: Promise.race([handle.completed(), wrong.promise]),
        failure: asLibraryError,
        onProgress(now) {
          if (artifacts.joined.get(torrent.manifestDigest) !== joined)
            throw new LibraryError(
              'E_SOURCE_UNAVAILABLE',
              'the artifact left its swarm while it was fetched; try again'
            )
          report(now)
        },
        gaveUp: (why, { peers, webseeds }) => gaveUp(why, context, warnings, lied && peers + webseeds === 0)
      },
      context
    )
    report(handle.progress())
    return [...warnings]
  } catch (error) {
    report({ ...handle.progress(), unverifiedBytes: 0 })
    await artifacts.leave(torrent.manifestDigest)
    context.signal.throwIfAborted()
    throw error
  }
}

/** Tells what this fetch has brought, beyond what was here when it began. */
function reporting(blobs: ReadonlySet<unknown>, { onProgress }: ArtifactFetchContext): (now: TorrentProgress) => void {
  let before: number | undefined
  return (now) => {
    if (now.state === 'fetching' || now.state === 'seeding') before ??= now.verifiedBytes
    const verifiedBytes = before === undefined ? 0 : now.verifiedBytes - before
    onProgress({
      blobsDone: blobs.size,
      bytesDone: verifiedBytes + now.unverifiedBytes,
      verifiedBytes,
      peers: now.peers,
      sources: now.peers + now.webseeds,
      rateBytesPerSecond: Math.round(now.downloadRate)
    })
  }
}

const wrongAtTheSource = (path: string): LibraryError =>
  new LibraryError(
    'E_NOT_IMPORTABLE',
    `"${path}" has the merkle root of the manifest but another SHA-256: no source can have these bytes`
  )

/** No source is left. If some sent bad data, that is the reason (spec swarm.16, swarm.17). */
function gaveUp(
  why: 'silent' | 'lonely',
  { fillTimeoutMs }: ArtifactFetchContext,
  warnings: ReadonlySet<string>,
  liesOnly: boolean
): LibraryError {
  const what =
    why === 'silent'
      ? `no source sent a byte for ${Math.round(fillTimeoutMs / 1000)} s`
      : 'no source is left, and neither a tracker nor the DHT can name another one'
  const reasons = [...warnings].slice(-5)
  return new LibraryError(
    liesOnly ? 'E_NOT_IMPORTABLE' : 'E_SOURCE_UNAVAILABLE',
    `${what}${reasons.length > 0 ? ` (${reasons.join('; ')})` : ''}; verified bytes are kept; try again when a source is available`
  )
}

function asLibraryError(error: Error): Error {
  let errno = ''
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (code !== undefined && /^E[A-Z0-9]{2,20}$/.test(code)) errno = ` (${code})`
    if (cause instanceof LibraryError || cause instanceof CasError) return cause
    if (isNoSpace(cause))
      return new LibraryError('E_NO_SPACE', `no space left on the store's file system (${errnoName(cause)})`, {
        cause: error
      })
  }
  return new LibraryError('E_IO', `the torrent failed: ${error.message}${errno}`, { cause: error })
}
