import { type CacheFolder, countOf, isObject, listOf, type ParsedObject, textOf } from './cache-folder.ts'
import type { FoundModel } from './found.ts'
import { ModelDraft, tryParseSha256 } from './model-draft.ts'
import { namespaceOf, shardSuffix, taggedName } from './model-names.ts'

const FILE_PATH = 'org.cncf.model.filepath'

/** The models in a Docker Model Runner folder: `models.json`, the manifests it lists, and their layers as blobs. */
export async function* readDocker(folder: CacheFolder): AsyncGenerator<FoundModel> {
  for (const entry of listOf((await folder.json('models.json', true))?.models)) {
    const id = tryParseSha256(textOf(entry.id))
    if (id === undefined) {
      folder.warn('bad-document', 'models.json', 'an entry has no digest')
      continue
    }
    const tags = Array.isArray(entry.tags) ? entry.tags.filter((tag) => typeof tag === 'string') : []
    const tag = tags[0] ?? id
    const draft = new ModelDraft('dmr', tag, folder)
    const manifest = await draft.folder.json(`manifests/sha256/${id.slice(7)}`)
    const { ns, name, version } = parseTag(tag)
    if (manifest !== undefined) await addLayers(draft, manifest, version === '' ? name : `${name}-${version}`)
    yield* draft.finish({ ns, name: taggedName(name, version) })
  }
}

/** `[registry/]ns/name[:tag]`; the tag `latest` is ignored. */
function parseTag(tag: string): { readonly ns: string; readonly name: string; readonly version: string } {
  const [, path = tag, version = ''] = /^(.*?)(?::([^/:]*))?$/.exec(tag.replace(/@.*$/, '')) ?? []
  const words = path.split('/')
  return {
    ns: words.length < 2 ? 'dmr' : namespaceOf(words.slice(0, -1)),
    name: words.at(-1) ?? 'model',
    version: version === 'latest' ? '' : version
  }
}

async function addLayers(draft: ModelDraft, manifest: ParsedObject, base: string): Promise<void> {
  const layers = listOf(manifest.layers)
  const counts = new Map<string, number>()
  for (const layer of layers) counts.set(endingOf(layer) ?? '', (counts.get(endingOf(layer) ?? '') ?? 0) + 1)
  const seen = new Map<string, number>()
  for (const layer of layers) {
    const digest = tryParseSha256(textOf(layer.digest))
    const type = textOf(layer.mediaType) ?? ''
    const ending = endingOf(layer)
    if (digest === undefined || ending === undefined) {
      draft.folder.warn(
        'unsupported',
        'models.json',
        `a layer of type ${JSON.stringify(type.slice(0, 100))} was left out`
      )
      continue
    }
    const number = (seen.get(ending) ?? 0) + 1
    seen.set(ending, number)
    const named = isObject(layer.annotations) ? textOf(layer.annotations[FILE_PATH]) : undefined
    await draft.add(named ?? nameOf(base, ending, number, counts.get(ending)!), `blobs/sha256/${digest.slice(7)}`, {
      sha256: digest,
      sizeBytes: countOf(layer.size)
    })
  }
}

const ENDINGS: readonly (readonly [RegExp, string])[] = [
  [/^application\/vnd\.docker\.ai\.mmproj/, 'mmproj'],
  [/^application\/vnd\.docker\.ai\.gguf\.v3\.lora/, 'lora.gguf'],
  [/^application\/vnd\.docker\.ai\.gguf\.v3$/, 'gguf'],
  [/^application\/vnd\.docker\.ai\.safetensors$/, 'safetensors'],
  [/^application\/vnd\.docker\.ai\.chat\.template\.jinja$/, 'jinja'],
  [/^application\/vnd\.docker\.ai\.license$/, 'license']
]

/** The file extension for a layer; for layers of the neutral model format it comes from the accompanying file name. */
function endingOf(layer: ParsedObject): string | undefined {
  const type = textOf(layer.mediaType) ?? ''
  const known = ENDINGS.find(([pattern]) => pattern.test(type))?.[1]
  if (known !== undefined) return known
  const named = isObject(layer.annotations) ? textOf(layer.annotations[FILE_PATH]) : undefined
  return /^application\/vnd\.cncf\.model\.[a-z.]+\.v1\.raw$/.test(type) && named !== undefined ? 'named' : undefined
}

function nameOf(base: string, ending: string, number: number, count: number): string {
  const more = number === 1 ? '' : `-${number}`
  if (ending === 'license') return `LICENSE${more}`
  if (ending === 'jinja') return number === 1 ? 'chat_template.jinja' : `chat_template-${number}.jinja`
  if (ending === 'mmproj') return `mmproj-${base}${more}.gguf`
  if (ending === 'lora.gguf') return `adapter-${base}${more}.gguf`
  return count === 1 ? `${base}.${ending}` : `${base}${shardSuffix(number, count)}.${ending}`
}
