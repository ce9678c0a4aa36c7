import { lstat, readFile, realpath, stat } from 'node:fs/promises'
import { isAbsolute, join, normalize } from 'node:path'
import type { StandingLayout } from '../standing/model.ts'
import { CacheFolder } from './cache-folder.ts'
import type { CacheRoot, FoundCache, FoundModel, FoundWarning, Tool } from './found.ts'
import { readDocker } from './read-docker.ts'
import { readFolder, readLmStudio } from './read-folders.ts'
import { readHubCache } from './read-hub.ts'
import { readLlamaCache } from './read-llama.ts'
import { readOllama } from './read-ollama.ts'
import { readRamaLama } from './read-ramalama.ts'

export type CacheEnvironment = Readonly<Record<string, string | undefined>>
type Reader = (folder: CacheFolder) => AsyncIterable<FoundModel>

const READERS: Readonly<Record<Tool, Reader>> = {
  hf: readHubCache,
  ollama: readOllama,
  lmstudio: readLmStudio,
  llama: readLlamaCache,
  dmr: readDocker,
  ramalama: readRamaLama,
  dir: readFolder
}

/** All tools except `dir`, whose folder has to be given. */
export const TOOLS: readonly Exclude<Tool, 'dir'>[] = ['hf', 'ollama', 'lmstudio', 'llama', 'dmr', 'ramalama']

/** Where the tools keep their models, by their own rules: environment variables come first. */
function candidates(
  home: string,
  env: CacheEnvironment,
  pointed: string | undefined
): readonly (readonly [Tool, string])[] {
  const set = (name: string, below = ''): string[] => {
    const value = env[name]?.replace(/^~(?=\/|$)/, home)
    return value === undefined || value === '' ? [] : [join(value, below)]
  }
  const first = (...places: readonly string[][]): string[] => places.find((place) => place.length > 0) ?? []
  const caches = first(set('XDG_CACHE_HOME'), [join(home, '.cache')])[0]!
  const data = first(set('XDG_DATA_HOME'), [join(home, '.local/share')])[0]!
  const all = (tool: Tool, places: readonly string[]): [Tool, string][] => places.map((place) => [tool, place])
  return [
    ...all(
      'hf',
      first(set('HF_HUB_CACHE'), set('HUGGINGFACE_HUB_CACHE'), set('HF_HOME', 'hub'), [join(caches, 'huggingface/hub')])
    ),
    // llama.cpp has both kinds in it: flat files, and since 2026 a hub cache.
    ...set('LLAMA_CACHE').flatMap((place) => [...all('hf', [place]), ...all('llama', [place])]),
    ...all('ollama', first(set('OLLAMA_MODELS'), [join(home, '.ollama/models'), '/usr/share/ollama/.ollama/models'])),
    ...all('lmstudio', [
      ...(pointed === undefined ? [] : [join(pointed, 'models')]),
      join(home, '.lmstudio/models'),
      join(caches, 'lm-studio/models')
    ]),
    ...all('llama', [join(caches, 'llama.cpp')]),
    ...all('dmr', first(set('MODELS_PATH'), [join(home, '.docker/models')])),
    ...all('ramalama', first(set('RAMALAMA_STORE', 'store'), [join(data, 'ramalama/store'), '/var/lib/ramalama/store']))
  ]
}

/**
 * The existing caches without duplicates, for the user with this home folder and environment. Their contents are not
 * read. The tools' own folders may be links; from there on, no link out of them is followed.
 */
export async function findCaches(options: {
  readonly home: string
  readonly env: CacheEnvironment
}): Promise<CacheRoot[]> {
  const { home, env } = options
  const roots = new Map<string, CacheRoot>()
  for (const [tool, place] of candidates(home, env, await lmStudioHome(home))) {
    if (!isAbsolute(place)) continue
    const path = await folderAt(normalize(place))
    if (path !== undefined) roots.set(`${tool} ${path}`, { tool, path })
  }
  return [...roots.values()]
}

/**
 * Where a tool looks for models, whether that folder exists or not: what a standing view fills. For llama-server and
 * ComfyUI, which are told a folder, one below the user's data.
 */
export async function toolFolder(
  layout: StandingLayout,
  { home, env }: { readonly home: string; readonly env: CacheEnvironment }
): Promise<string> {
  if (layout === 'llama' || layout === 'comfyui') {
    const data = env.XDG_DATA_HOME
    return join(data !== undefined && isAbsolute(data) ? data : join(home, '.local/share'), 'svc', layout)
  }
  const places = candidates(home, env, await lmStudioHome(home))
  return normalize(places.find(([tool, place]) => tool === layout && isAbsolute(place))![1])
}

/** @returns the real path of a readable folder, else undefined */
async function folderAt(place: string): Promise<string | undefined> {
  try {
    const path = await realpath(place)
    return (await stat(path)).isDirectory() ? path : undefined
  } catch {
    return undefined
  }
}

/** `~/.lmstudio-home-pointer` names the folder when the user has moved it. */
async function lmStudioHome(home: string): Promise<string | undefined> {
  try {
    const pointer = join(home, '.lmstudio-home-pointer')
    const stats = await lstat(pointer)
    if (!stats.isFile() || stats.size > 4_096) return undefined
    const path = (await readFile(pointer, 'utf8')).trim()
    return isAbsolute(path) && !path.includes('\0') ? path : undefined
  } catch {
    return undefined
  }
}

/**
 * The contents of a cache: models with at least one file, and warnings for what was skipped. Reads listings, names and
 * sizes, but no model bytes. Limited to 200,000 entries and documents of 16 MiB; never throws because of a cache's
 * content.
 */
export async function readCache(root: CacheRoot): Promise<FoundCache> {
  const warnings: FoundWarning[] = []
  const warn = (warning: FoundWarning): void => void warnings.push(warning)
  const path = await folderAt(root.path)
  if (path === undefined) {
    warn({ code: 'absent', path: root.path, message: 'the folder does not exist, or cannot be read' })
    return { root, models: [], warnings }
  }
  const models: FoundModel[] = []
  for await (const model of READERS[root.tool](new CacheFolder(path, warn))) models.push(model)
  return { root: { tool: root.tool, path }, models, warnings }
}
