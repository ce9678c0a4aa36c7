import { isQuant } from '@svc/ref'
import { CacheFolder } from './cache-folder.ts'
import type { FoundModel, Tool } from './found.ts'
import { ModelDraft } from './model-draft.ts'
import { modelBase } from './model-names.ts'

const WEIGHTS = /\.(?:gguf|safetensors)$/i
const MAX_DEPTH = 4

/** The models of LM Studio: everything in `<publisher>/<model>/`, which are the names of a repository of the hub. */
export async function* readLmStudio(folder: CacheFolder): AsyncGenerator<FoundModel> {
  for (const publisher of await folder.folders('')) {
    for (const name of await folder.folders(publisher))
      yield* await wholeFolder(
        'lmstudio',
        folder,
        `${publisher}/${name}`,
        { ns: publisher, name },
        `${publisher}/${name}`
      )
  }
}

/**
 * The models in any folder. A folder with a `config.json`, or with safetensors, is one model; loose GGUF files form one
 * model per base name, with all quants and shards; other folders are searched, four levels deep. Where folders say
 * `owner/repo`, that is the name; folders of a quant's shards belong to the repository above them.
 */
export async function* readFolder(folder: CacheFolder, at = '', depth = MAX_DEPTH): AsyncGenerator<FoundModel> {
  const entries = await folder.list(at)
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
  const below = (name: string): string => (at === '' ? name : `${at}/${name}`)
  if (isModelFolder(files)) {
    const [ns = '', name = ''] = `${folder.root}/${at}`.split('/').filter(Boolean).slice(-2)
    yield* await wholeFolder('dir', folder, at, { ns, name })
    return
  }
  const ggufs = Map.groupBy(
    files.filter((name) => WEIGHTS.test(name)),
    modelBase
  )
  // a lone projector belongs to the model next to it.
  const isProjector = (name: string): boolean => /mmproj/i.test(name)
  const owners = [...ggufs].filter(([, names]) => !names.every(isProjector))
  for (const [base, names] of owners.length === 0 ? ggufs : owners) {
    const draft = new ModelDraft('dir', folder.path(below(base)), folder)
    const shared = owners.length === 1 ? files.filter((name) => isProjector(name) && !names.includes(name)) : []
    for (const name of [...names, ...shared]) await draft.add(name, below(name))
    const repository = repositoryOf(at)
    const [owner, repo] = repository.split('/').slice(-2)
    const isRepo = owner !== undefined && repo !== undefined
    const ns = isRepo ? owner : (`${folder.root}/${at}`.split('/').filter(Boolean).at(-1) ?? '')
    yield* draft.finish({ ns, name: isRepo && owners.length === 1 ? repo : base }, { folder: folder.path(repository) })
  }
  for (const name of entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)) {
    if (depth > 0 && !name.startsWith('.')) yield* readFolder(folder, below(name), depth - 1)
  }
}

/** Whether all below a folder with these files is one model. */
const isModelFolder = (files: readonly string[]): boolean =>
  files.some((name) => name === 'config.json' || name === 'model_index.json' || /\.safetensors$/i.test(name))

/** The folder of a repository: above the folders that it has for single quants, as `Q4_K_M` or `UD-IQ2_XXS`. */
function repositoryOf(at: string): string {
  const words = at.split('/')
  while (words.length > 1 && isQuant(words.at(-1)!.toLowerCase().replaceAll('-', '_').replace(/^ud_/, 'ud-')))
    words.pop()
  return words.join('/')
}

/** Everything below a folder as one model; nothing when it has no weights. */
async function wholeFolder(
  tool: Tool,
  folder: CacheFolder,
  at: string,
  words: { readonly ns: string; readonly name: string },
  repo?: string
): Promise<readonly FoundModel[]> {
  const draft = new ModelDraft(tool, tool === 'dir' ? folder.path(at) : at, folder)
  let hasWeights = false
  for await (const name of draft.folder.walk(at, MAX_DEPTH)) {
    // unfinished downloads, and files of version control or file managers.
    if (name.split('/').some((segment) => segment.startsWith('.')) || /\.(?:part|incomplete)$/.test(name)) continue
    hasWeights ||= WEIGHTS.test(name)
    await draft.add(name, at === '' ? name : `${at}/${name}`)
  }
  return hasWeights ? draft.finish(words, repo === undefined ? { folder: folder.path(at) } : { hub: { repo } }) : []
}

/** Files of which a repository has its own. */
const OF_A_REPOSITORY: ReadonlySet<string> = new Set(['README.md', '.gitattributes', '.git', '.cache', 'modules.json'])

/**
 * The repositories in a folder, as paths from there, if it is none itself: folders with a `config.json` or
 * `model_index.json` and weights, and those of GGUF files with a base name of their own. Empty for one model. Reads names
 * only, four levels deep; what cannot be read counts as absent.
 */
export async function repositoriesBelow(path: string): Promise<readonly string[]> {
  const folder = new CacheFolder(path, () => undefined)
  const top = (await folder.list('')).map(({ name }) => name)
  if (isModelFolder(top) || top.some((name) => OF_A_REPOSITORY.has(name))) return []
  /** Folders by what makes them one repository. */
  const found = new Map<string, string>()
  const visit = async (at: string, depth: number): Promise<void> => {
    const entries = await folder.list(at)
    const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
    if (files.includes('config.json') || files.includes('model_index.json')) {
      for await (const name of folder.walk(at, MAX_DEPTH)) {
        if (!WEIGHTS.test(name)) continue
        found.set(`/${at}`, at)
        return
      }
    }
    const ggufs = files.filter((name) => /\.gguf$/i.test(name) && !/mmproj|imatrix/i.test(name))
    // several base names beside each other are one import, which names them
    const base = ggufs.map(modelBase).sort()[0]
    if (base !== undefined && !found.has(base.toLowerCase())) found.set(base.toLowerCase(), repositoryOf(at))
    for (const entry of entries)
      if (entry.isDirectory() && depth > 0 && !entry.name.startsWith('.'))
        await visit(at === '' ? entry.name : `${at}/${entry.name}`, depth - 1)
  }
  await visit('', MAX_DEPTH)
  const folders = [...new Set(found.values())]
  return folders.length > 1 ? folders : []
}
