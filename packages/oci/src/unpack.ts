import { isDigest, isTensorLayer, layerBase, layerNames, type Sha256Digest } from '@svc/ref'
import { type Descriptor, type OciIndex, type OciManifest, parseObject } from './document.ts'
import { OciError } from './errors.ts'
import {
  DOCKER_CONFIG_TYPE,
  FILEPATH_ANNOTATION,
  IMAGE_CONFIG_TYPE,
  INDEX_TYPE,
  MANIFEST_TYPE,
  PIN_ANNOTATION,
  REF_ANNOTATION,
  REF_NAME_ANNOTATION,
  TITLE_ANNOTATION,
  WITHHELD_ANNOTATION
} from './media-types.ts'

/** A file in an artifact. */
export interface OciFile {
  /** The name in the artifact; not validated. */
  readonly name: string
  readonly digest: Sha256Digest
  readonly sizeBytes: number
}

/** The contents of an artifact, for an import. */
export interface OciModel {
  readonly files: readonly OciFile[]
  /** Annotations of the manifest that it was packed from, if any: `svc.hf.repo` and the like. */
  readonly annotations: Readonly<Record<string, string>>
  /** Digest of that manifest. An import of this artifact should produce it again. */
  readonly pin?: string | undefined
  /** The `ns/name:quant` that it was packed under. */
  readonly ref?: string | undefined
  /** Whoever packed it marked it as not for others. */
  readonly isWithheld: boolean
}

const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json'
/** Layers that would have to be unpacked. ModelPack marks them with a suffix, oras with an annotation. */
const PACKED_TYPE = /^application\/vnd\.cncf\.model\..*\.tar(?:\+[a-z0-9]+)?$|\+(?:gzip|zstd)$|\.gzip$/
const UNPACK_ANNOTATION = 'io.deis.oras.content.unpack'

/** Annotations that an import keeps, if they have the expected form: anybody may have packed the artifact. */
const OWN_ANNOTATIONS: Readonly<Record<string, RegExp>> = {
  'svc.hf.repo': /^[\w.-]{1,96}(?:\/[\w.-]{1,96})?$/,
  'svc.hf.revision': /^[\w./-]{1,255}$/
}

/** What files are named after whose layers have no name: those of Ollama's registry, and Docker's older models. */
export interface Naming {
  /** Where the artifact comes from: `library/qwen3`, or the name of a layout. */
  readonly repository: string
  /** Default `latest`, which says nothing. */
  readonly tag?: string | undefined
  /** The bytes of its configuration. */
  readonly config: Uint8Array
}

/**
 * The files of an artifact, whoever packed it: one per layer, named by its path or title. Where no layer has a name,
 * the media types of Ollama and of Docker's models say what each is; other layers are skipped, as oras does.
 * @param naming without it, layers without a name are skipped
 * @throws OciError `E_UNSUPPORTED` for an ordinary image, for layers that would have to be unpacked, or when no file is
 *   left
 */
export function modelOf(manifest: OciManifest, naming?: Naming): OciModel {
  const { config, layers, annotations } = manifest
  const isImage = config.mediaType === IMAGE_CONFIG_TYPE || config.mediaType === DOCKER_CONFIG_TYPE
  if (isImage && layers.some((layer) => isTarOfImage(layer))) {
    throw unsupported(
      'this is an ordinary image, whose files are inside tars; import the artifact that it was made from'
    )
  }
  const named = layers.flatMap((layer) => namedFile(layer) ?? [])
  const files = named.length > 0 || naming === undefined ? named : filesByType(layers, naming)
  if (files.length === 0) {
    const isOfTensors = layers.some(({ mediaType }) => isTensorLayer(mediaType))
    throw unsupported(
      isOfTensors ? 'the model is stored tensor by tensor, which only Ollama reads' : 'none of its layers names a file'
    )
  }
  const pin = isDigest(annotations[PIN_ANNOTATION]) ? annotations[PIN_ANNOTATION] : undefined
  const own = Object.entries(annotations).filter(([key, text]) => OWN_ANNOTATIONS[key]?.test(text))
  return {
    files,
    annotations: pin === undefined ? {} : Object.fromEntries(own),
    pin,
    ref: annotations[REF_ANNOTATION],
    // any value is a mark, not only the one that svc writes
    isWithheld: annotations[WITHHELD_ANNOTATION] !== undefined
  }
}

/** Undefined for a layer that names no file. */
function namedFile({ mediaType, digest, size, annotations }: Descriptor): OciFile | undefined {
  const name = annotations?.[FILEPATH_ANNOTATION] ?? annotations?.[TITLE_ANNOTATION]
  if (name === undefined || mediaType === EMPTY_TYPE) return undefined
  if (!PACKED_TYPE.test(mediaType) && annotations?.[UNPACK_ANNOTATION] !== 'true')
    return { name, digest, sizeBytes: size }
  throw unsupported(`${JSON.stringify(name)} is packed (${mediaType}); svc imports only raw layers of one file each`)
}

function filesByType(layers: readonly Descriptor[], { repository, tag = 'latest', config }: Naming): OciFile[] {
  const base = layerBase(repository.slice(repository.lastIndexOf('/') + 1), tag, quantIn(config))
  const names = layerNames(
    layers.map(({ mediaType }) => mediaType),
    base
  )
  return layers.flatMap(({ digest, size }, i) => {
    const name = names[i]
    return name === undefined ? [] : [{ name, digest, sizeBytes: size }]
  })
}

/** Ollama says it as `file_type`, Docker as `config.quantization`, perhaps with a slash. */
function quantIn(config: Uint8Array): string | undefined {
  const { file_type, config: inner } = parseObject(config, 'the configuration') as {
    readonly file_type?: unknown
    readonly config?: { readonly quantization?: unknown } | null
  }
  const said = file_type ?? inner?.quantization
  return typeof said === 'string' ? said.slice(said.lastIndexOf('/') + 1) : undefined
}

/** oras uses this type for plain files as well; in our images it marks a tar */
const isTarOfImage = ({ mediaType, annotations }: Descriptor): boolean =>
  /^application\/vnd\.(?:oci\.image\.layer\.v1|docker\.image\.rootfs\.(?:diff|foreign\.diff))\.tar/.test(mediaType) &&
  annotations?.[FILEPATH_ANNOTATION] === undefined

/**
 * The requested manifest of a layout: by tag or digest, else the only one.
 * @throws OciError `E_NOT_FOUND` with the tags as candidates; `E_UNSUPPORTED` for an index of platforms
 */
export function chooseManifest(index: OciIndex, wanted: string | undefined): Descriptor {
  const tags = index.manifests.map(({ annotations, digest }) => annotations?.[REF_NAME_ANNOTATION] ?? digest)
  const exact = index.manifests.filter(
    ({ digest }, i) => wanted === undefined || wanted === digest || tags[i] === wanted
  )
  const found = exact.length > 0 ? exact : index.manifests.filter((_, i) => tags[i]?.endsWith(`:${wanted}`))
  const [only] = found
  if (only === undefined || found.length > 1) {
    const what = wanted === undefined ? `${tags.length} models` : `${found.length} models ${JSON.stringify(wanted)}`
    throw new OciError('E_NOT_FOUND', `the layout contains ${what}; name one of them`, { candidates: tags })
  }
  if (only.mediaType === INDEX_TYPE) throw unsupported('the tag names images for several platforms, not a model')
  if (only.mediaType !== MANIFEST_TYPE)
    throw unsupported(`the tag names ${JSON.stringify(only.mediaType.slice(0, 200))}`)
  return only
}

const unsupported = (message: string): OciError => new OciError('E_UNSUPPORTED', message)
