import { withLease } from '@svc/cas'
import type { ImportedModels, OwnedModels, WorkOptions } from '@svc/library'
import { LibraryError, type OpenedParts, partsOf } from '@svc/library/parts'
import { formatRepoId, type Sha256Digest } from '@svc/ref'
import type { SwarmSettings } from './settings.ts'
import type { Shared } from './share.ts'
import type { Listening, ModelSharing, SharedModel, SharingOptions, SharingStatus } from './sharing.ts'
import { SwarmClient } from './swarm-client.ts'

/**
 * Shares the models of a library that this process has opened: complete ones are given to peers, but none that its owner
 * keeps private or that a credential was needed for; shared ones of others can be fetched; and `ensure` asks peers for what
 * is missing. Resolves when everything is announced, or after ten seconds; the rest continues. Close it before the library.
 * @throws LibraryError `E_INVALID` for an address that cannot be used
 */
export async function shareModels(library: OwnedModels, options: SharingOptions = {}): Promise<ModelSharing> {
  const parts = partsOf(library)
  const { peer, webseed } = options
  const addresses = { peer: addressOf(peer), webseed: webseed && addressOf(webseed) }
  const client = await SwarmClient.open({ ...parts, settings: settingsOf(options), addresses }).catch(
    (cause: Error) => {
      throw new LibraryError('E_INVALID', `the models cannot be shared: ${cause.message}`, { cause })
    }
  )
  const sharing = new LibrarySharing(client, parts)
  await client.start()
  return sharing
}

const addressOf = ({ host = '0.0.0.0', port = 0 }: Listening = {}) => ({ host, port })

const settingsOf = (options: SharingOptions): SwarmSettings => ({
  seed: options.seed ?? true,
  seedOnImport: true,
  seedRestricted: false,
  noSeedVerify: options.noSeedVerify ?? false,
  dht: options.dht ?? true,
  dhtBootstrap: undefined,
  lsd: options.lsd ?? false,
  trackers: options.trackers ?? [],
  uploadLimitBytesPerSecond: options.uploadLimitBytesPerSecond ?? 0,
  fillTimeoutMs: options.fillTimeoutMs ?? 600_000,
  trusted: [],
  zone: undefined
})

class LibrarySharing implements ModelSharing {
  readonly #client: SwarmClient
  readonly #parts: OpenedParts
  #closing: Promise<void> | undefined

  constructor(client: SwarmClient, parts: OpenedParts) {
    this.#client = client
    this.#parts = parts
    parts.fillFrom(client.filler)
    parts.importer.onImported((digest) => {
      if (this.#closing === undefined) client.imported(digest)
    })
    parts.superseded.listen((digest) => void this.#superseded(digest))
  }

  async share(text: string): Promise<Shared> {
    const { ref, ns, name, manifestDigest } = await this.#parts.resolver.resolveHere(text)
    return this.#client.share({ ref, manifestDigest, name: formatRepoId({ ns, name }), join: true })
  }

  async fetch(
    { magnet, manifestDigest, companions }: SharedModel,
    as: string,
    options: WorkOptions = {}
  ): Promise<ImportedModels> {
    const { running, store } = this.#parts
    const how = { magnet, manifestDigest, as, manifestFromPeers: true, ...(companions && { companions }) }
    const request = this.#client.pinned(how)
    return running.run('import', options, (work) => withLease(store, () => this.#client.importPinned(request, work)))
  }

  async status(): Promise<SharingStatus> {
    return { ...(await this.#client.status()), ...this.#client.totals() }
  }

  close(): Promise<void> {
    this.#parts.fillFrom(undefined)
    return (this.#closing ??= this.#client.close())
  }

  /** Another artifact has the name: it is no longer shared, unless another name needs it. */
  async #superseded(digest: Sha256Digest): Promise<void> {
    if (this.#closing !== undefined) return
    const { needed, log } = this.#parts
    try {
      if (!(await needed.isGiven(digest))) await this.#client.unneeded(digest)
    } catch (error) {
      log.error({ err: error, manifest: digest }, 'a replaced artifact is still shared')
    }
  }
}
