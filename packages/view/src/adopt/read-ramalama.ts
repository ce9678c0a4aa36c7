import { type CacheFolder, listOf, textOf } from './cache-folder.ts'
import type { FoundModel } from './found.ts'
import { ModelDraft } from './model-draft.ts'
import { namespaceOf, taggedName } from './model-names.ts'

const HUB_TYPES = new Set(['huggingface', 'hf'])

/** Namespaces of the hub and of Ollama stay as they are; those of another hub carry its name. */
function namespaceIn(type: string, folders: readonly string[]): string {
  const ns = namespaceOf(folders)
  if (type === 'ollama') return ns === '' || ns === 'library' ? type : ns
  if (ns === '') return type
  return type === 'modelscope' ? `${type}-${ns}` : ns
}

/** The models in a RamaLama store: `<type>/<org…>/<name>/refs/<tag>.json` lists files by the names of their blobs. */
export async function* readRamaLama(folder: CacheFolder): AsyncGenerator<FoundModel> {
  for await (const at of folder.walk('', 12)) {
    const [, model = '', tag = ''] = /^(.+)\/refs\/([^/]+)\.json$/.exec(at) ?? []
    const words = model.split('/')
    if (words.length < 2) continue
    const [type, ...path] = words as [string, ...string[]]
    const draft = new ModelDraft('ramalama', `${type}://${path.join('/')}:${tag}`, folder)
    for (const file of listOf((await draft.folder.json(at))?.files)) {
      const name = textOf(file.name) ?? ''
      const blob = (textOf(file.hash) ?? '').replaceAll(':', '-')
      if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(blob)) draft.folder.warn('bad-document', at, 'a file in it has no hash')
      // blobs from some sources are not named by a digest, but for example by the hash of a URL.
      else await draft.add(name, `${model}/blobs/${blob}`, blob.startsWith('sha256-') ? { sha256: blob } : {})
    }
    const isHub = HUB_TYPES.has(type)
    yield* draft.finish(
      { ns: namespaceIn(type, path.slice(0, -1)), name: taggedName(path.at(-1)!, tag) },
      // a third part is the name of a file
      isHub && path.length >= 2 ? { hub: { repo: path.slice(0, 2).join('/') } } : {}
    )
  }
}
