import { parseJson } from '@svc/internal-http'
import { isDigest, type Sha256Digest } from '@svc/ref'
import { PublishError } from './errors.ts'
import type { Publication } from './publication.ts'

/** Key of the machine-readable index of a target. */
export const LISTING_KEY = 'index.json'
/** Generous: an entry takes a few hundred bytes per model and per file. */
export const MAX_LISTING_BYTES = 64 << 20

/** A model in the index. */
export interface ListedModel {
  readonly ref?: string
  /** Its owner keeps it from others; whoever imports it does so as well (spec add.39). */
  readonly withheld?: true
  /** It has files that are imported as they are, if whoever imports it agrees. */
  readonly opaque?: true
  readonly manifest: Sha256Digest
  /** `btmh:1220<64 hex>` */
  readonly infohash: string
  /** Torrent name, which is the folder of its files. */
  readonly name: string
  readonly magnet: string
  /** Key of the `.torrent`. */
  readonly torrent: string
  readonly files: readonly ListingFile[]
  /** What lies beside it, with a torrent of its own. */
  readonly companions?: {
    readonly digest: Sha256Digest
    readonly infohash: string
    readonly name: string
    readonly torrent: string
    readonly files: readonly ListingFile[]
  }
}

interface ListingFile {
  readonly name: string
  readonly sizeBytes: number
  readonly digest: Sha256Digest
}

/** The content of {@link LISTING_KEY}. */
export interface Listing {
  /** Base URL for readers; ends in a slash. */
  readonly url?: string
  readonly models: readonly ListedModel[]
}

const VERSION = 1
/** Of rows as svc writes them, each value takes more. */
const MIN_VALUE_BYTES = 16

/** @throws PublishError `E_BAD_TARGET` if svc did not write the file */
export function parseListing(bytes: Uint8Array, name: string): Listing {
  const foreign = (cause?: unknown): PublishError =>
    new PublishError(
      'E_BAD_TARGET',
      `${name} contains an ${LISTING_KEY} that svc did not write; publish to a separate folder or prefix`,
      cause
    )
  let value: { svcPublication?: unknown; url?: unknown; models?: unknown }
  try {
    value = parseJson(bytes, { values: 64 + bytes.length / MIN_VALUE_BYTES }) as typeof value
  } catch (cause) {
    throw foreign(cause)
  }
  if (typeof value !== 'object' || value?.svcPublication !== VERSION || !Array.isArray(value.models)) throw foreign()
  if (!value.models.every(isModel)) throw foreign()
  return { models: value.models, ...(typeof value.url === 'string' && { url: value.url }) }
}

function isModel(value: unknown): value is ListedModel {
  const model = value as Partial<Record<keyof ListedModel, unknown>> | null
  if (typeof model !== 'object' || model === null || !isDigest(model.manifest)) return false
  const texts = [model.infohash, model.name, model.magnet, model.torrent, model.ref ?? '']
  return texts.every((text) => typeof text === 'string') && areFiles(model.files) && areCompanions(model.companions)
}

function areCompanions(value: unknown): boolean {
  if (value === undefined) return true
  const { digest, infohash, name, torrent, files } = (value ?? {}) as Partial<Record<string, unknown>>
  return isDigest(digest) && [infohash, name, torrent].every((text) => typeof text === 'string') && areFiles(files)
}

const areFiles = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every(
    (file: Partial<ListingFile> | null) =>
      typeof file?.name === 'string' && Number.isSafeInteger(file.sizeBytes) && typeof file.digest === 'string'
  )

/** Serializes an index. Sorted, so that the same models always give the same bytes. */
export function listingBytes({ url, models }: Listing): Uint8Array {
  const sorted = [...models].sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  return Buffer.from(`${JSON.stringify({ svcPublication: VERSION, url, models: sorted }, null, 1)}\n`)
}

const orderOf = ({ ref = '\uffff', manifest }: ListedModel): string => `${ref} ${manifest}`

/** Adds models; each replaces entries with the same manifest or the same ref. */
export function addToListing(before: Listing, added: readonly Publication[], url: string | undefined): Listing {
  const models = added.map(
    ({
      ref,
      isWithheld,
      isOpaque,
      manifestDigest,
      infohash,
      name,
      magnet,
      torrentKey,
      files,
      companions
    }): ListedModel => ({
      ...(ref !== undefined && { ref }),
      ...(isWithheld && { withheld: true as const }),
      ...(isOpaque && { opaque: true as const }),
      manifest: manifestDigest,
      infohash,
      name,
      magnet,
      torrent: torrentKey,
      files,
      ...(companions !== undefined && {
        companions: {
          digest: companions.digest,
          infohash: companions.infohash,
          name: companions.name,
          torrent: companions.torrentKey,
          files: companions.files
        }
      })
    })
  )
  const manifests = new Set(models.map(({ manifest }) => manifest))
  const refs = new Set(models.flatMap(({ ref }) => ref ?? []))
  const kept = before.models.filter(
    ({ manifest, ref }) => !manifests.has(manifest) && (ref === undefined || !refs.has(ref))
  )
  const where = url ?? before.url
  return { models: [...kept, ...models], ...(where !== undefined && { url: where }) }
}
