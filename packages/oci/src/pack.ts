import type { Sha256Digest } from '@svc/ref'
import type { BlobContent } from './content.ts'
import { type Descriptor, descriptorOf, type OciDocument, sealOci } from './document.ts'
import { OciError } from './errors.ts'
import {
  FILEPATH_ANNOTATION,
  type LayerUse,
  MANIFEST_TYPE,
  MODEL_ARTIFACT_TYPE,
  MODEL_CONFIG_TYPE,
  PIN_ANNOTATION,
  REF_ANNOTATION,
  rawLayerType,
  TITLE_ANNOTATION,
  WITHHELD_ANNOTATION
} from './media-types.ts'

/** A file of a model as runtimes see it: tokenizers and adapters unpacked, `config.json` in its upstream form. */
export interface PackFile {
  /** Relative path, separated by `/`. */
  readonly name: string
  readonly sizeBytes: number
  readonly digest: Sha256Digest
  /** Kind of the manifest's entry (`weights.gguf`, `tokenizer`, …); for an unpacked file that of its tar; `licence`, `companion`. */
  readonly kind: string
  readonly role?: string | undefined
  /** Absolute path of the file. It is hashed again while it is written or sent. */
  readonly path: string
}

/** A model to pack. */
export interface PackInput {
  /** In the order of the manifest. */
  readonly files: readonly PackFile[]
  /** Digest and annotations of the manifest: the pin, and what an import restores in its own manifest. */
  readonly manifestDigest: Sha256Digest
  readonly annotations: Readonly<Record<string, string>>
  /** `ns/name:quant`; absent for an artifact without a name. */
  readonly ref?: string | undefined
  /** Not for others: says so in an annotation, and files are written for their owner alone. Default false. */
  readonly isWithheld?: boolean | undefined
  /** Facts from the model config; unknown ones are absent. */
  readonly model?:
    | undefined
    | {
        readonly family?: string | undefined
        readonly weightsFormat?: string | undefined
        readonly quantization?: string | undefined
      }
}

/** A layer and the source of its bytes. */
export interface PackedLayer {
  readonly descriptor: Descriptor
  readonly content: BlobContent
}

/** An image or artifact that is ready to be written or pushed. */
export interface PackedImage {
  readonly manifest: OciDocument
  readonly config: OciDocument
  readonly layers: readonly PackedLayer[]
  /** `ns/name:quant`, if it has a name. */
  readonly ref?: string | undefined
  /** Its files are for their owner alone. */
  readonly isWithheld?: boolean | undefined
}

/** Texts in a manifest's annotations that are among the files: they are not annotations of the image as well. */
const LICENCE_FILE = 'svc.license.file.'

/**
 * Packs a model as ModelPack does, with one raw layer per file, so that the layer's digest is the file's own. Weights
 * come first, in the given order, since some consumers take the first layer for the model. Nothing depends on the time,
 * the user or the machine: equal input gives equal bytes.
 * @throws OciError `E_UNSUPPORTED` for a model without files, or with a name that would lead out of a folder
 */
export function packArtifact(input: PackInput): PackedImage {
  const layers = inLayerOrder(input.files).map((file) => layerOf(useOf(file), file.name, contentOfFile(file)))
  const config = sealOci(MODEL_CONFIG_TYPE, modelConfig(input, layers))
  return packedImage(input, config, layers, { artifactType: MODEL_ARTIFACT_TYPE })
}

/** An image of these parts. @param more further fields of its manifest */
export function packedImage(
  input: PackInput,
  config: OciDocument,
  layers: readonly PackedLayer[],
  more: { readonly artifactType?: string } = {}
): PackedImage {
  const manifest = sealOci(MANIFEST_TYPE, {
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    ...more,
    config: descriptorOf(config),
    layers: layers.map(({ descriptor }) => descriptor),
    annotations: manifestAnnotations(input)
  })
  return { manifest, config, layers, ref: input.ref, isWithheld: input.isWithheld }
}

export const contentOfFile = ({ digest, sizeBytes, path }: PackFile): BlobContent => ({
  digest,
  sizeBytes,
  segments: [{ path, sizeBytes }]
})

const isText = (name: string): boolean =>
  /(?:^|\/)(?:README|LICEN[CS]E|COPYING|NOTICE)[^/]*$|\.(?:md|rst|pdf)$/i.test(name)

/** Roles of files beside the weights that runtimes load as weights. */
const LOADED_ROLES: ReadonlySet<string> = new Set(['vision-projector', 'draft', 'adapter'])

function useOf({ kind, role, name }: Pick<PackFile, 'kind' | 'role' | 'name'>): LayerUse {
  if (kind === 'weights.gguf' || kind === 'weights.safetensors') return 'weight'
  if (kind === 'weights.aux') return LOADED_ROLES.has(role ?? '') ? 'weight' : 'weight.config'
  if (kind === 'code') return 'code'
  if (kind === 'opaque') return isText(name) ? 'doc' : name.endsWith('.py') ? 'code' : 'weight'
  if (kind === 'licence') return 'doc'
  if (kind === 'companion') return name.endsWith('.py') ? 'code' : isText(name) ? 'doc' : 'weight.config'
  return kind === 'adapter' && name.endsWith('.safetensors') ? 'weight' : 'weight.config'
}

function rank(file: PackFile): number {
  if (useOf(file) !== 'weight') return useOf(file) === 'weight.config' ? 3 : 4
  if (file.kind === 'weights.aux') return 1
  return file.kind === 'adapter' ? 2 : 0
}

/**
 * A stable sort: shards keep their order. @throws OciError `E_UNSUPPORTED` if there are no files, or one has a name that
 * would lead out of the folder into which a client unpacks them
 */
export function inLayerOrder(files: readonly PackFile[]): PackFile[] {
  if (files.length === 0) throw new OciError('E_UNSUPPORTED', 'a model without files cannot be packed')
  for (const { name } of files)
    if (!IS_BELOW.test(name))
      throw new OciError(
        'E_UNSUPPORTED',
        `${JSON.stringify(name.slice(0, 200))} cannot be the name of a file in an image`
      )
  return [...files].sort((a, b) => rank(a) - rank(b))
}

/** Without empty, `.` and `..` segments, backslashes and control characters. */
const IS_BELOW = /^(?!.*(?:^|\/)\.{0,2}(?:\/|$))[^\\\0-\x1f\x7f]+$/

const layerOf = (use: LayerUse, name: string, content: BlobContent): PackedLayer => ({
  descriptor: {
    mediaType: rawLayerType(use),
    digest: content.digest,
    size: content.sizeBytes,
    // the first for ModelPack's consumers, the second for oras and container runtimes; neither reads the other's
    annotations: { [FILEPATH_ANNOTATION]: name, [TITLE_ANNOTATION]: name }
  },
  content
})

function modelConfig({ annotations, ref, model = {} }: PackInput, layers: readonly PackedLayer[]): unknown {
  const { family, weightsFormat, quantization } = model
  const licence = annotations['svc.license']
  const revision = annotations['svc.hf.revision']
  const name = ref?.split(':')[0]
  return {
    descriptor: {
      ...(family !== undefined && { family }),
      ...(name !== undefined && { name }),
      ...(revision !== undefined && { revision }),
      ...(licence !== undefined && { licenses: [licence] })
    },
    config: {
      ...(family !== undefined && { architecture: family }),
      ...(weightsFormat !== undefined && { format: weightsFormat }),
      ...(quantization !== undefined && { quantization })
    },
    // raw layers are not compressed, so the digest of the content is the layer's
    modelfs: { type: 'layers', diffIds: layers.map(({ descriptor }) => descriptor.digest) }
  }
}

/** The manifest's annotations without the licence texts, which are files, with the pin and the name added; sorted. */
function manifestAnnotations({ annotations, manifestDigest, ref, isWithheld }: PackInput): Record<string, string> {
  const own = Object.entries(annotations).filter(([key]) => !key.startsWith(LICENCE_FILE))
  const licence = annotations['svc.license']
  return Object.fromEntries(
    [
      ...own,
      [PIN_ANNOTATION, manifestDigest] as const,
      ...(ref === undefined ? [] : [[REF_ANNOTATION, ref] as const]),
      ...(isWithheld === true ? [[WITHHELD_ANNOTATION, 'true'] as const] : []),
      ...(licence === undefined ? [] : [['org.opencontainers.image.licenses', licence] as const])
    ].sort(([a], [b]) => (a < b ? -1 : 1))
  )
}
