import {
  type Beside,
  type FillContext,
  type Filler,
  type FillRequest,
  type Library,
  LibraryError,
  NO_HINTS
} from '@svc/library/parts'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactTorrents } from './artifact-torrents.ts'
import type { Fetches } from './fetches.ts'
import type { PinnedImports } from './pinned-imports.ts'
import type { ArtifactSeeding } from './seeding.ts'
import { WebseedDocuments, type WebseedReading } from './webseed-documents.ts'

export interface SwarmFillerDeps extends Pick<Library, 'log'> {
  readonly torrents: Pick<ArtifactTorrents, 'of' | 'recordedLayersOf'>
  readonly reading: WebseedReading
  readonly fetches: Pick<Fetches, 'run'>
  readonly seeding: Pick<ArtifactSeeding, 'goOnOrLeave'>
  readonly pinned: Pick<PinnedImports, 'fillBeside'>
}

/** Brings what artifacts lack, from peers and webseeds. */
export class SwarmFiller implements Filler {
  readonly #deps: SwarmFillerDeps

  constructor(deps: SwarmFillerDeps) {
    this.#deps = deps
  }

  canFill(): boolean {
    return true
  }

  async fill(
    { manifestDigest, artifact, missing }: FillRequest,
    { signal, onProgress }: Pick<FillContext, 'signal' | 'onProgress'>
  ): Promise<void> {
    const { torrents, reading, fetches, seeding, log } = this.#deps
    const torrent = await torrents.of(manifestDigest)
    if (torrent === undefined)
      throw new LibraryError('E_SOURCE_UNAVAILABLE', `the manifest ${manifestDigest} is not in the store`)
    const hints = artifact?.hints ?? NO_HINTS
    const complain = (message: string): void => log.info({ torrent: torrent.name, message }, 'swarm')
    const layers =
      (await torrents.recordedLayersOf(torrent, artifact)) ??
      (await new WebseedDocuments(reading, hints, complain).pieceLayers(torrent, signal))
    await fetches.run(
      { torrent, layers, hints },
      {
        signal,
        onProgress: ({ blobsDone, bytesDone }) =>
          onProgress({ filesDone: Math.min(blobsDone, missing.length), bytesDone })
      }
    )
    await seeding.goOnOrLeave(manifestDigest)
  }

  fillBeside(manifestDigest: Sha256Digest, context: Parameters<Filler['fillBeside']>[1]): Promise<Beside | undefined> {
    return this.#deps.pinned.fillBeside(manifestDigest, context)
  }
}
