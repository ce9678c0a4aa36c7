import type { Library } from '@svc/library/parts'
import { toHex } from '@svc/metainfo'
import type { Sha256Digest } from '@svc/ref'
import type { ArtifactSwarm } from './artifact-swarm.ts'
import type { WebseedKeys } from './webseed-keys.ts'

export interface SignedRequestsDeps extends Pick<Library, 'artifacts' | 'log'> {
  readonly keys: Pick<WebseedKeys, 'headersFor'>
  readonly swarm: Pick<ArtifactSwarm, 'joined'>
  /** The artifact may no longer be shared: its fetch continues as permitted. */
  readonly onRestricted: (manifestDigest: Sha256Digest) => Promise<void>
}

/**
 * Signs the engine's requests to webseeds with a key, and records before the first of them that the artifact's bytes came with it:
 * where a redirect leads is known only then (spec add.33, add.37).
 */
export class SignedRequests {
  readonly #deps: SignedRequestsDeps
  /** By infohash: torrents that no artifact's state speaks for. */
  readonly #watched = new Map<string, { isSigned: boolean }>()

  constructor(deps: SignedRequestsDeps) {
    this.#deps = deps
  }

  /** Runs a fetch of a torrent that belongs to no artifact. @returns also whether any request was signed */
  async watching<T>(infohash: Uint8Array, fetch: () => Promise<T>): Promise<T & { readonly isSigned: boolean }> {
    const watched = { isSigned: false }
    this.#watched.set(toHex(infohash), watched)
    try {
      return { ...(await fetch()), isSigned: watched.isSigned }
    } finally {
      this.#watched.delete(toHex(infohash))
    }
  }

  /**
   * The headers that sign a GET; undefined if the address has no key.
   * @throws Error when the artifact has just become restricted: nothing is requested while it may still be shared
   */
  async headersFor(url: URL, range: string, infohash: Uint8Array): Promise<Record<string, string> | undefined> {
    const { keys, artifacts, onRestricted, log } = this.#deps
    const headers = await keys.headersFor(url, { range })
    if (headers === undefined) return undefined
    const watched = this.#watched.get(toHex(infohash))
    if (watched !== undefined) {
      watched.isSigned = true
      return headers
    }
    const manifestDigest = this.#artifactOf(infohash)
    if (manifestDigest === undefined) throw new Error('the artifact of a signed request is unknown')
    const state = await artifacts.read(manifestDigest)
    if (state?.incomplete !== true || state.provenance.access === 'restricted') return headers
    await artifacts.usedKey(manifestDigest)
    // not awaited: it ends the fetch that waits for this
    onRestricted(manifestDigest).catch((error: unknown) => {
      log.error({ err: error, manifest: manifestDigest }, 'a fetch continues visibly: it cannot be withheld')
    })
    throw new Error('its content needs a key, so the artifact is withheld first')
  }

  #artifactOf(infohash: Uint8Array): Sha256Digest | undefined {
    for (const [manifestDigest, { torrent }] of this.#deps.swarm.joined)
      if (Buffer.compare(torrent.infohash, infohash) === 0) return manifestDigest
    return undefined
  }
}
