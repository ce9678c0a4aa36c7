import type { CacheFolder } from './cache-folder.ts'
import type { FoundModel, Tool } from './found.ts'
import { ModelDraft } from './model-draft.ts'
import { modelBase } from './model-names.ts'

const WEIGHTS = /\.(?:gguf|safetensors)$/i
const MAX_DEPTH = 4

/** The models of LM Studio: everything in `<publisher>/<model>/`. */
export async function* readLmStudio(folder: CacheFolder): AsyncGenerator<FoundModel> {
  for (const publisher of await folder.folders('')) {
    for (const name of await folder.folders(publisher))
      yield* await wholeFolder('lmstudio', folder, `${publisher}/${name}`, { ns: publisher, name })
  }
}

/**
 * The models in any folder. A folder with a `config.json`, or with safetensors, is one model; loose GGUF files form one
 * model per base name, with all quants and shards; other folders are searched, four levels deep.
 */
export async function* readFolder(folder: CacheFolder, at = '', depth = MAX_DEPTH): AsyncGenerator<FoundModel> {
  const entries = await folder.list(at)
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
  const words = (at === '' ? folder.root : `${folder.root}/${at}`).split('/')
  const ns = words.at(-2) ?? ''
  const below = (name: string): string => (at === '' ? name : `${at}/${name}`)
  if (files.includes('config.json') || files.some((name) => /\.safetensors$/i.test(name))) {
    yield* await wholeFolder('dir', folder, at, { ns, name: words.at(-1) ?? '' })
    return
  }
  const ggufs = Map.groupBy(
    files.filter((name) => WEIGHTS.test(name)),
    modelBase
  )
  // A lone projector belongs to the model next to it.
  const isProjector = (name: string): boolean => /mmproj/i.test(name)
  const owners = [...ggufs].filter(([, names]) => !names.every(isProjector))
  for (const [base, names] of owners.length === 0 ? ggufs : owners) {
    const draft = new ModelDraft('dir', folder.path(below(base)), folder)
    const shared = owners.length === 1 ? files.filter((name) => isProjector(name) && !names.includes(name)) : []
    for (const name of [...names, ...shared]) await draft.add(name, below(name))
    yield* draft.finish({ ns: words.at(-1) ?? '', name: base })
  }
  for (const name of entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)) {
    if (depth > 0 && !name.startsWith('.')) yield* readFolder(folder, below(name), depth - 1)
  }
}

/** Everything below a folder as one model; nothing when it has no weights. */
async function wholeFolder(
  tool: Tool,
  folder: CacheFolder,
  at: string,
  words: { readonly ns: string; readonly name: string }
): Promise<readonly FoundModel[]> {
  const draft = new ModelDraft(tool, tool === 'dir' ? folder.path(at) : at, folder)
  let hasWeights = false
  for await (const name of draft.folder.walk(at, MAX_DEPTH)) {
    // Unfinished downloads, and files of version control or file managers.
    if (name.split('/').some((segment) => segment.startsWith('.')) || /\.(?:part|incomplete)$/.test(name)) continue
    hasWeights ||= WEIGHTS.test(name)
    await draft.add(name, at === '' ? name : `${at}/${name}`)
  }
  return hasWeights ? draft.finish(words) : []
}
