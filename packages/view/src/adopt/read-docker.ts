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
  for (const [ending, layers] of Map.groupBy(listOf(manifest.layers), endingOf)) {
    for (const [i, layer] of layers.entries()) {
      const digest = tryParseSha256(textOf(layer.digest))
      if (digest === undefined || ending === undefined) {
        const type = JSON.stringify((textOf(layer.mediaType) ?? '').slice(0, 100))
        draft.folder.warn('unsupported', 'models.json', `a layer of type ${type} was left out`)
        continue
      }
      const name = nameIn(layer) ?? nameOf(base, ending, i + 1, layers.length)
      const expected = { sha256: digest, sizeBytes: countOf(layer.size) }
      await draft.add(name, `blobs/sha256/${digest.slice(7)}`, expected)
    }
  }
}

const nameIn = ({ annotations }: ParsedObject): string | undefined =>
  isObject(annotations) ? textOf(annotations[FILE_PATH]) : undefined

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
  const isRaw = /^application\/vnd\.cncf\.model\.[a-z.]+\.v1\.raw$/.test(type)
  return isRaw && nameIn(layer) !== undefined ? 'named' : undefined
}

function nameOf(base: string, ending: string, number: number, count: number): string {
  const more = number === 1 ? '' : `-${number}`
  if (ending === 'license') return `LICENSE${more}`
  if (ending === 'jinja') return number === 1 ? 'chat_template.jinja' : `chat_template-${number}.jinja`
  if (ending === 'mmproj') return `mmproj-${base}${more}.gguf`
  if (ending === 'lora.gguf') return `adapter-${base}${more}.gguf`
  return count === 1 ? `${base}.${ending}` : `${base}${shardSuffix(number, count)}.${ending}`
}
