import { createHash } from 'node:crypto'
import { isObject, parseJson } from '@svc/internal-http'
import { digestFromBytes, isDigest, type Sha256Digest } from '@svc/ref'
import { OciError } from './errors.ts'
import { DOCKER_MANIFEST_TYPE, INDEX_TYPE, MANIFEST_TYPE } from './media-types.ts'

/** Largest manifest, index or configuration, in bytes: the limit of common registries. */
export const MAX_DOCUMENT_BYTES = 4 << 20
/** Limit of layers in a manifest and of manifests in an index. */
const MAX_ENTRIES = 20_000
/** Enough for some 10,000 layers. */
const BOUNDS = { depth: 64, values: 200_000 }

/** A document's reference to a blob. Only SHA-256 digests are supported. */
export interface Descriptor {
  readonly mediaType: string
  readonly digest: Sha256Digest
  /** In bytes. */
  readonly size: number
  readonly artifactType?: string
  readonly annotations?: Readonly<Record<string, string>>
}

/** An image manifest, of a model or of an ordinary image. */
export interface OciManifest {
  readonly artifactType?: string
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
  readonly annotations: Readonly<Record<string, string>>
}

/** An image index: that of a layout, or one tag for several platforms. */
export interface OciIndex {
  readonly manifests: readonly Descriptor[]
  readonly annotations: Readonly<Record<string, string>>
}

/** A document with the exact bytes that its digest names. */
export interface OciDocument {
  readonly mediaType: string
  readonly bytes: Uint8Array
  readonly digest: Sha256Digest
}

/** Serializes a value: fields in the given order, no white space, so that equal values have equal digests. */
export function sealOci(mediaType: string, value: unknown): OciDocument {
  const bytes = Buffer.from(JSON.stringify(value))
  return { mediaType, bytes, digest: digestOf(bytes) }
}

export const digestOf = (bytes: Uint8Array): Sha256Digest =>
  digestFromBytes(createHash('sha256').update(bytes).digest())

export const descriptorOf = ({ mediaType, digest, bytes }: OciDocument): Descriptor => ({
  mediaType,
  digest,
  size: bytes.length
})

/** Parses a manifest, also one in Docker's form. Unknown fields are ignored. @throws OciError `E_FORMAT` */
export function parseOciManifest(bytes: Uint8Array): OciManifest {
  const what = 'the OCI manifest'
  const document = parseObject(bytes, what)
  const { artifactType } = document
  checkVersion(document, [MANIFEST_TYPE, DOCKER_MANIFEST_TYPE], what)
  return {
    config: descriptor(document.config, `config of ${what}`),
    layers: list(document.layers, `layers of ${what}`).map((layer, i) => descriptor(layer, `layers[${i}] of ${what}`)),
    annotations: annotations(document.annotations, what) ?? {},
    ...(typeof artifactType === 'string' && { artifactType })
  }
}

/** Parses an index. Unknown fields are ignored. @throws OciError `E_FORMAT` */
export function parseOciIndex(bytes: Uint8Array): OciIndex {
  const what = 'the OCI index'
  const document = parseObject(bytes, what)
  checkVersion(document, [INDEX_TYPE], what)
  return {
    manifests: list(document.manifests, `manifests of ${what}`).map((each, i) =>
      descriptor(each, `manifests[${i}] of ${what}`)
    ),
    annotations: annotations(document.annotations, what) ?? {}
  }
}

/** Parses a JSON object, within limits. @throws OciError `E_FORMAT` */
export function parseObject(bytes: Uint8Array, what: string): Readonly<Record<string, unknown>> {
  if (bytes.length > MAX_DOCUMENT_BYTES) throw malformed(`${what} has more than ${MAX_DOCUMENT_BYTES} bytes`)
  let value: unknown
  try {
    value = parseJson(bytes, BOUNDS)
  } catch (cause) {
    throw new OciError('E_FORMAT', `${what} is not JSON`, {}, cause)
  }
  if (!isObject(value)) throw malformed(`${what} is not a JSON object`)
  return value
}

function checkVersion(document: Readonly<Record<string, unknown>>, mediaTypes: readonly unknown[], what: string): void {
  if (document.schemaVersion !== 2) throw malformed(`${what} does not have schemaVersion 2`)
  const { mediaType: given } = document
  if (given !== undefined && !mediaTypes.includes(given))
    throw malformed(`${what} says it is ${JSON.stringify(String(given).slice(0, 200))}`)
}

function descriptor(value: unknown, what: string): Descriptor {
  if (!isObject(value)) throw malformed(`${what} is not a descriptor`)
  const { mediaType, digest, size, artifactType } = value
  if (typeof mediaType !== 'string' || mediaType.length > 255) throw malformed(`${what} has no mediaType`)
  if (!isDigest(digest)) throw malformed(`${what} has no SHA-256 digest`)
  if (!Number.isSafeInteger(size) || (size as number) < 0) throw malformed(`${what} has no size in bytes`)
  const noted = annotations(value.annotations, what)
  return {
    mediaType,
    digest,
    size: size as number,
    ...(typeof artifactType === 'string' && { artifactType }),
    ...(noted !== undefined && { annotations: noted })
  }
}

function list(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(`the ${what} are not a list`)
  if (value.length > MAX_ENTRIES) throw malformed(`there are more than ${MAX_ENTRIES} ${what}`)
  return value
}

function annotations(value: unknown, what: string): Readonly<Record<string, string>> | undefined {
  if (value === undefined || value === null) return undefined
  if (!isObject(value) || !Object.values(value).every((text) => typeof text === 'string'))
    throw malformed(`annotations of ${what} must be strings`)
  return value as Record<string, string>
}

const malformed = (message: string): OciError => new OciError('E_FORMAT', message)
