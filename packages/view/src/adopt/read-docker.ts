import { layerNames } from '@svc/ref'
import { type CacheFolder, countOf, isObject, listOf, type ParsedObject, textOf } from './cache-folder.ts'
import type { FoundModel } from './found.ts'
import { ModelDraft, tryParseSha256 } from './model-draft.ts'
import { namespaceOf, taggedName } from './model-names.ts'

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
  const typeOf = (layer: ParsedObject): string => textOf(layer.mediaType) ?? ''
  const names = layerNames(layers.map(typeOf), base)
  for (const [i, layer] of layers.entries()) {
    const digest = tryParseSha256(textOf(layer.digest))
    // the layers of the neutral model format are raw files
    const isFile = names[i] !== undefined || /^application\/vnd\.cncf\.model\.[a-z.]+\.v1\.raw$/.test(typeOf(layer))
    const name = isFile ? (nameIn(layer) ?? names[i]) : undefined
    if (digest === undefined || name === undefined) {
      const type = JSON.stringify(typeOf(layer).slice(0, 100))
      draft.folder.warn('unsupported', 'models.json', `a layer of type ${type} was left out`)
      continue
    }
    await draft.add(name, `blobs/sha256/${digest.slice(7)}`, { sha256: digest, sizeBytes: countOf(layer.size) })
  }
}

const nameIn = ({ annotations }: ParsedObject): string | undefined =>
  isObject(annotations) ? textOf(annotations[FILE_PATH]) : undefined
