import { isTensorLayer, layerBase, layerNames } from '@svc/ref'
import { type CacheFolder, countOf, listOf, type ParsedObject, textOf } from './cache-folder.ts'
import type { FoundModel } from './found.ts'
import { ModelDraft, tryParseSha256 } from './model-draft.ts'
import { isOllamaLibrary, OLLAMA_HOST, type OllamaName, wordsOf } from './ollama-name.ts'

const TYPE = 'application/vnd.ollama.image.'
const LIST_TYPE = 'application/vnd.ollama.manifest.list.v2+json'
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

async function readModel(folder: CacheFolder, at: string, name: OllamaName): Promise<readonly FoundModel[]> {
  const { host, ns, model, tag } = name
  const isOwn = host === OLLAMA_HOST
  const place = isOllamaLibrary(name) ? '' : isOwn ? `${ns}/` : `${host}/${ns}/`
  const draft = new ModelDraft('ollama', `${place}${model}:${tag}`, folder)
  const manifest = await runnable(draft.folder, at)
  if (manifest !== undefined) await addLayers(draft, at, manifest, name)
  const hub = host === 'hf.co' || host === 'huggingface.co' ? { hub: { repo: `${ns}/${model}` } } : {}
  return draft.finish(wordsOf(name), hub)
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
  const layers = listOf(manifest.layers)
  const types = layers.map(({ mediaType }) => textOf(mediaType) ?? '')
  const names = layerNames(types, layerBase(name.model, name.tag, textOf(config?.file_type)))
  for (const [i, layer] of layers.entries()) {
    const fileName = names[i]
    if (fileName === undefined) continue
    const digest = tryParseSha256(textOf(layer.digest))
    if (digest === undefined) draft.folder.warn('bad-document', at, `the layer of ${fileName} has no digest`)
    else await draft.add(fileName, blobAt(digest), { sha256: digest, sizeBytes: countOf(layer.size) })
  }
  if (types.some(isTensorLayer))
    draft.folder.warn('unsupported', at, 'the model is stored tensor by tensor, which no other tool can read')
  const family = textOf(config?.model_family)
  if (family !== undefined && OWN_ENGINE.has(family) && layersOf(manifest, 'projector').length === 0)
    draft.folder.warn('tool-only', at, `files of ${family} from this registry may not load in other runtimes`)
}

async function readConfig(folder: CacheFolder, manifest: ParsedObject): Promise<ParsedObject | undefined> {
  const config = manifest.config
  const digest = tryParseSha256(textOf((config as ParsedObject | undefined)?.digest))
  return digest === undefined ? undefined : folder.json(blobAt(digest), true)
}
