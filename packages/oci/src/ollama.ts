import { descriptorOf, sealOci } from './document.ts'
import { DOCKER_CONFIG_TYPE, DOCKER_MANIFEST_TYPE } from './media-types.ts'
import { contentOfFile, type PackedImage, type PackedLayer, type PackFile, type PackInput } from './pack.ts'

const layerType = (kind: string): string => `application/vnd.ollama.image.${kind}`

/** Files by which a model from Ollama's registry says how to prompt it; parameters alone may be of another tool. */
const TEMPLATE = 'template'
const BESIDE_TEMPLATE: Readonly<Record<string, string>> = { 'params.json': 'params', 'system.txt': 'system' }

/**
 * Packs a model as Ollama pulls and keeps it: a manifest in Docker's form without names of files, whose layers are the
 * GGUF, its projectors and texts as they are. Equal input gives equal bytes.
 * @returns undefined for a model that Ollama cannot load from there: one without a GGUF, or with several
 */
export function packOllama(input: PackInput): PackedImage | undefined {
  const { files, model = {}, ref, isWithheld } = input
  const weights = files.filter(({ kind }) => kind === 'weights.gguf')
  if (weights.length !== 1) return undefined
  const hasTemplate = files.some(({ kind, name }) => kind === 'companion' && name === TEMPLATE)
  const kindOf = (file: PackFile): string | undefined => {
    if (file.kind === 'weights.gguf') return 'model'
    if (file.kind === 'weights.aux') return file.role === 'vision-projector' ? 'projector' : undefined
    if (file.kind === 'licence') return 'license'
    if (file.kind !== 'companion' || !hasTemplate) return undefined
    return file.name === TEMPLATE ? 'template' : BESIDE_TEMPLATE[file.name]
  }
  const typed = ORDER.flatMap((kind) => files.filter((file) => kindOf(file) === kind).map((file) => ({ kind, file })))
  const layers = typed.map(({ kind, file }): PackedLayer => {
    const content = contentOfFile(file)
    return { descriptor: { mediaType: layerType(kind), digest: content.digest, size: content.sizeBytes }, content }
  })
  const { family = '', quantization = '' } = model
  const hasProjector = typed.some(({ kind }) => kind === 'projector')
  const config = sealOci(DOCKER_CONFIG_TYPE, {
    model_format: 'gguf',
    model_family: family,
    model_families: [...(family === '' ? [] : [family]), ...(hasProjector ? ['clip'] : [])],
    model_type: '',
    file_type: quantization.toUpperCase(),
    architecture: 'amd64',
    os: 'linux',
    rootfs: { type: 'layers', diff_ids: layers.map(({ descriptor }) => descriptor.digest) }
  })
  const manifest = sealOci(DOCKER_MANIFEST_TYPE, {
    schemaVersion: 2,
    mediaType: DOCKER_MANIFEST_TYPE,
    config: descriptorOf(config),
    layers: layers.map(({ descriptor }) => descriptor)
  })
  return { manifest, config, layers, ref, isWithheld }
}

const ORDER = ['model', 'projector', 'template', 'license', 'params', 'system']
