import type { CacheFolder } from './cache-folder.ts'
import type { FoundModel, FoundWarning, Tool } from './found.ts'
import { modelBase } from './model-base.ts'
import { ModelDraft } from './model-draft.ts'

const WEIGHTS = /\.(?:gguf|safetensors)$/i
const MAX_DEPTH = 4

/** The models of LM Studio: everything in `<publisher>/<model>/`. */
export async function readLmStudio(folder: CacheFolder, warn: (warning: FoundWarning) => void): Promise<FoundModel[]> {
  const models: FoundModel[] = []
  for (const publisher of await folder.folders('')) {
    for (const name of await folder.folders(publisher)) {
      const model = await wholeFolder('lmstudio', folder, `${publisher}/${name}`, { ns: publisher, name }, warn)
      if (model !== undefined) models.push(model)
    }
  }
  return models
}

/**
 * The models in any folder. A folder with a `config.json`, or with safetensors, is one model; loose GGUF files form one
 * model per base name, with all quants and shards; other folders are searched, four levels deep.
 */
export async function readFolder(
  folder: CacheFolder,
  warn: (warning: FoundWarning) => void,
  at = '',
  depth = MAX_DEPTH
): Promise<FoundModel[]> {
  const entries = await folder.list(at)
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
  const words = (at === '' ? folder.root : `${folder.root}/${at}`).split('/')
  const ns = words.at(-2) ?? ''
  const below = (name: string): string => (at === '' ? name : `${at}/${name}`)
  if (files.includes('config.json') || files.some((name) => /\.safetensors$/i.test(name))) {
    const model = await wholeFolder('dir', folder, at, { ns, name: words.at(-1) ?? '' }, warn)
    return model === undefined ? [] : [model]
  }
  const models: FoundModel[] = []
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
    const model = draft.finish({ ns: words.at(-1) ?? '', name: base }, warn)
    if (model !== undefined) models.push(model)
  }
  for (const name of entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)) {
    if (depth > 0 && !name.startsWith('.')) models.push(...(await readFolder(folder, warn, below(name), depth - 1)))
  }
  return models
}

/** Everything below a folder as one model; undefined when it has no weights. */
async function wholeFolder(
  tool: Tool,
  folder: CacheFolder,
  at: string,
  words: { readonly ns: string; readonly name: string },
  warn: (warning: FoundWarning) => void
): Promise<FoundModel | undefined> {
  const draft = new ModelDraft(tool, tool === 'dir' ? folder.path(at) : at, folder)
  let hasWeights = false
  for await (const name of draft.folder.walk(at, MAX_DEPTH)) {
    // Unfinished downloads, and files of version control or file managers.
    if (name.split('/').some((segment) => segment.startsWith('.')) || /\.(?:part|incomplete)$/.test(name)) continue
    hasWeights ||= WEIGHTS.test(name)
    await draft.add(name, at === '' ? name : `${at}/${name}`)
  }
  return hasWeights ? draft.finish(words, warn) : undefined
}
