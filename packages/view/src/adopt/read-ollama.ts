import { type CacheFolder, countOf, listOf, type ParsedObject, textOf } from './cache-folder.ts'
import type { FoundModel } from './found.ts'
import { ModelDraft, tryParseSha256 } from './model-draft.ts'
import { namespaceOf, shardSuffix, taggedName } from './model-names.ts'

const TYPE = 'application/vnd.ollama.image.'
const LIST_TYPE = 'application/vnd.ollama.manifest.list.v2+json'
const DEFAULT_HOST = 'registry.ollama.ai'
/** Architectures whose files only this tool's own engine loads, not llama.cpp, unless there is a projector. */
const OWN_ENGINE = new Set(['mllama', 'gemma3', 'gemma3n', 'gptoss', 'qwen25vl', 'qwen3vl', 'mistral3', 'llama4'])

/**
 * The models in an Ollama folder. A file's name combines the model's name, its tag and the quant in its config:
 * `llama3.2:1b` of `Q8_0` becomes `llama3.2-1b-q8_0.gguf`. Layers that are single tensors are skipped.
 */
export async function* readOllama(folder: CacheFolder): AsyncGenerator<FoundModel> {
  const seen = new Set<string>()
  // the newer tree comes first: if both have a name, the tool uses that one.
  for (const tree of ['manifests-v2', 'manifests']) {
    for await (const name of folder.walk(tree, 4)) {
      const [host, ns, model, tag, ...rest] = name.split('/')
      if (tag === undefined || rest.length > 0 || seen.has(name)) continue
      for (const found of await readModel(folder, `${tree}/${name}`, { host: host!, ns: ns!, model: model!, tag })) {
        seen.add(name)
        yield found
      }
    }
  }
}

interface OllamaName {
  readonly host: string
  readonly ns: string
  readonly model: string
  readonly tag: string
}

async function readModel(folder: CacheFolder, at: string, name: OllamaName): Promise<readonly FoundModel[]> {
  const { host, ns, model, tag } = name
  const isLibrary = host === DEFAULT_HOST && ns === 'library'
  const place = isLibrary ? '' : host === DEFAULT_HOST ? `${ns}/` : `${host}/${ns}/`
  const draft = new ModelDraft('ollama', `${place}${model}:${tag}`, folder)
  const manifest = await runnable(draft.folder, at)
  if (manifest !== undefined) await addLayers(draft, at, manifest, name)
  const hub = host === 'hf.co' || host === 'huggingface.co' ? { hub: { repo: `${ns}/${model}` } } : {}
  const words = { ns: isLibrary ? 'ollama' : namespaceOf([host, ns]), name: taggedName(model, tag) }
  return draft.finish(words, hub)
}

/** The manifest itself; of a list, the child with GGUF layers. */
async function runnable(folder: CacheFolder, at: string): Promise<ParsedObject | undefined> {
  const document = await folder.json(at)
  if (document?.mediaType !== LIST_TYPE) return document
  for (const child of listOf(document.manifests)) {
    if (textOf(child.format)?.toLowerCase() === 'safetensors' || child.runner === 'mlx') continue
    const digest = tryParseSha256(textOf(child.digest))
    const whole = child.layers === undefined && digest !== undefined ? await folder.json(blobAt(digest)) : child
    if (layersOf(whole, 'model').length > 0) return whole
  }
  folder.warn('unsupported', at, 'none of its variants is a GGUF model')
  return undefined
}

const blobAt = (digest: string): string => `blobs/sha256-${digest.slice(7)}`

const layersOf = (manifest: ParsedObject | undefined, kind: string): ParsedObject[] =>
  listOf(manifest?.layers).filter(({ mediaType }) => textOf(mediaType)?.split(';')[0] === TYPE + kind)

async function addLayers(draft: ModelDraft, at: string, manifest: ParsedObject, name: OllamaName): Promise<void> {
  const config = await readConfig(draft.folder, manifest)
  const base = fileBase(name, textOf(config?.file_type))
  const names: Readonly<Record<string, (position: string) => string>> = {
    model: (position) => `${base}${position}.gguf`,
    projector: (position) => `mmproj-${base}${position}.gguf`,
    adapter: (position) => `adapter-${base}${position}.gguf`,
    template: (position) => `template${position}`,
    license: (position) => `LICENSE${position}`,
    params: (position) => `params${position}.json`,
    system: (position) => `system${position}.txt`
  }
  for (const [kind, nameOf] of Object.entries(names)) {
    const layers = layersOf(manifest, kind)
    for (const [i, layer] of layers.entries()) {
      const digest = tryParseSha256(textOf(layer.digest))
      if (digest === undefined) draft.folder.warn('bad-document', at, `a layer of ${kind} has no digest`)
      else
        await draft.add(nameOf(positionOf(kind, i, layers.length)), blobAt(digest), {
          sha256: digest,
          sizeBytes: countOf(layer.size)
        })
    }
  }
  if (layersOf(manifest, 'tensor').length > 0)
    draft.folder.warn('unsupported', at, 'the model is stored tensor by tensor, which no other tool can read')
  const family = textOf(config?.model_family)
  if (family !== undefined && OWN_ENGINE.has(family) && layersOf(manifest, 'projector').length === 0)
    draft.folder.warn('tool-only', at, `files of ${family} from this registry may not load in other runtimes`)
}

/** Several layers of weights are the shards of one model, in order. */
function positionOf(kind: string, index: number, count: number): string {
  if (count === 1) return ''
  return kind === 'model' ? shardSuffix(index + 1, count) : index === 0 ? '' : `-${index + 1}`
}

async function readConfig(folder: CacheFolder, manifest: ParsedObject): Promise<ParsedObject | undefined> {
  const config = manifest.config
  const digest = tryParseSha256(textOf((config as ParsedObject | undefined)?.digest))
  return digest === undefined ? undefined : folder.json(blobAt(digest), true)
}

function fileBase({ model, tag }: OllamaName, fileType: string | undefined): string {
  const named = tag === 'latest' ? model : `${model}-${tag}`
  const quant = /^[A-Za-z0-9_]{2,20}$/.test(fileType ?? '') ? fileType!.toLowerCase() : undefined
  const base = named.toLowerCase().replace(/[^a-z0-9._-]+/g, '-')
  return quant === undefined || base.endsWith(`-${quant}`) ? base : `${base}-${quant}`
}
