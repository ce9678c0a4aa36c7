import { type ArtifactState, absentBlobs, type Library, LibraryError } from '@svc/internal-state'
import type { FillContext, Filler, FillRequest } from './fill.ts'
import type { Room } from './room.ts'

/** Fetches files of an artifact that came from this source. @throws as {@link Filler} */
export type SourceFiller = Pick<Filler, 'fill' | 'canFill'>

export interface SourcesFillerDeps extends Pick<Library, 'store' | 'artifacts'> {
  readonly room: Pick<Room, 'require'>
  /** The source that artifacts came from. */
  readonly source: SourceFiller | undefined
  readonly swarm: Filler | undefined
}

/** Asks the source that an artifact came from, then the swarm for the rest. */
export class SourcesFiller implements Filler {
  readonly #deps: SourcesFillerDeps

  constructor(deps: SourcesFillerDeps) {
    this.#deps = deps
  }

  canFill(artifact: ArtifactState | undefined): boolean {
    const { source, swarm } = this.#deps
    return source?.canFill(artifact) === true || swarm !== undefined
  }

  async fill(request: FillRequest, context: FillContext): Promise<void> {
    const { source, swarm, artifacts, room, store } = this.#deps
    const { manifestDigest, artifact } = request
    const wanted = new Set(request.missing)
    const files = request.manifest.files.filter(({ digest }) => wanted.has(digest))
    const sizes = new Map(files.map(({ digest, size }) => [digest, size]))
    const { bytes } = await absentBlobs(store, sizes)
    if (bytes > 0) await room.require(bytes, context)
    const failure = source?.canFill(artifact) ? await this.#fromSource(source, request, context) : undefined
    const { digests: missing } = await absentBlobs(store, sizes)
    if (missing.length > 0 && swarm === undefined)
      throw failure ?? new LibraryError('E_SOURCE_UNAVAILABLE', `its source did not send ${missing.join(', ')}`)
    try {
      await swarm?.fill({ ...request, missing }, context)
    } catch (error) {
      context.signal.throwIfAborted()
      if (failure === undefined || !(error instanceof LibraryError)) throw error
      throw new LibraryError(error.code, `${failure.message}; from peers and webseeds: ${error.message}`, {
        cause: error
      })
    }
    // the swarm completes what never was complete, and sees where its bytes come from
    await artifacts.endAway(manifestDigest)
  }

  async fillBeside(...args: Parameters<Filler['fillBeside']>): ReturnType<Filler['fillBeside']> {
    return this.#deps.swarm?.fillBeside(...args)
  }

  /** @returns why files are still missing. @throws errors that no other source would change */
  async #fromSource(source: SourceFiller, request: FillRequest, context: FillContext): Promise<Error | undefined> {
    try {
      await source.fill(request, context)
      return undefined
    } catch (error) {
      context.signal.throwIfAborted()
      if (!(error instanceof LibraryError) || !OF_A_SOURCE.has(error.code)) throw error
      return error
    }
  }
}

/** Errors that only the source caused. */
const OF_A_SOURCE: ReadonlySet<string> = new Set([
  'E_NOT_AT_SOURCE',
  'E_SOURCE_FORBIDDEN',
  'E_RATE_LIMITED',
  'E_SOURCE_UNAVAILABLE',
  'E_NOT_IMPORTABLE',
  'E_BAD_LISTING'
])
