import { glob, lstat, opendir, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type CacheEnvironment, findCaches } from './find-caches.ts'
import type { CacheRoot, Tool } from './found.ts'

/** Entries of a folder that are looked at for a tool's documents. */
const MAX_ENTRIES = 100_000
const LLAMA_MANIFEST = /^manifest=[^=]+=[^=]+=[^=]*\.json$/
/** The places of tools whose folders have no document of the tool in them. */
const PLACES: readonly (readonly [RegExp, Tool])[] = [
  [/\/(?:\.lmstudio|\.cache\/lm-studio)\/models$/, 'lmstudio'],
  [/\/(?:\.cache|Caches)\/llama\.cpp$/, 'llama']
]
/** The top-level folders that RamaLama has per kind of source, each with `…/refs/<tag>.json` some levels below. */
const RAMALAMA_KINDS = ['huggingface', 'hf', 'ollama', 'oci', 'modelscope', 'file', 'http', 'https', 'rlcr']

const placeOf = (path: string): Tool | undefined => PLACES.find(([pattern]) => pattern.test(path))?.[1]

/** The tool whose cache a folder is, judged by what every cache of that tool has; `dir` for any other folder. */
export async function toolOfCache(path: string): Promise<Tool> {
  const names = await readdir(path).catch((): string[] => [])
  if (names.some((name) => name.startsWith('models--'))) return 'hf'
  if (names.some((name) => LLAMA_MANIFEST.test(name))) return 'llama'
  if (!names.includes('blobs')) return (await isRamaLama(path, names)) ? 'ramalama' : (placeOf(path) ?? 'dir')
  if (names.includes('models.json')) return 'dmr'
  return names.includes('manifests') || names.includes('manifests-v2') ? 'ollama' : 'dir'
}

async function isRamaLama(path: string, names: readonly string[]): Promise<boolean> {
  for (const kind of names.filter((name) => RAMALAMA_KINDS.includes(name))) {
    for await (const found of glob('{*,*/*,*/*/*,*/*/*/*}/refs/*.json', { cwd: join(path, kind) }))
      if (found !== '') return true
  }
  return false
}

/**
 * Says of files whether a tool downloaded them, judged by where they lie: a folder that only looks like a cache counts
 * as one. Looks at names alone, and at each folder once.
 */
export class ToolFolders {
  readonly #caches: Promise<readonly CacheRoot[]>
  readonly #above = new Map<string, Promise<Tool | undefined>>()
  readonly #isFlat = new Map<string, Promise<boolean>>()
  readonly #hasDownloads = new Map<string, Promise<boolean>>()

  /** @param user whose tools may be configured to have their caches elsewhere */
  constructor(user: { readonly home: string; readonly env: CacheEnvironment }) {
    this.#caches = findCaches(user)
  }

  /** @param path absolute, without links in it. @returns the tool that downloaded a file; undefined for the owner's own */
  async toolOf(path: string): Promise<Tool | undefined> {
    const folder = dirname(path)
    const tool = await this.#toolAbove(folder)
    if (tool !== undefined) return tool
    if (await this.#isFlatFile(path, folder)) return 'llama'
    return (await this.#isDownload(path, folder)) ? 'hf' : undefined
  }

  #toolAbove(folder: string): Promise<Tool | undefined> {
    return once(this.#above, folder, async () => {
      const parent = dirname(folder)
      return (await this.#toolAt(folder)) ?? (parent === folder ? undefined : this.#toolAbove(parent))
    })
  }

  async #toolAt(folder: string): Promise<Tool | undefined> {
    const known = (await this.#caches).find(({ path }) => path === folder)
    if (known !== undefined) return known.tool
    if (basename(folder).startsWith('models--')) return 'hf'
    const place = placeOf(folder)
    if (place !== undefined || !(await exists(folder, 'blobs'))) return place
    if (await exists(folder, 'models.json')) return 'dmr'
    if ((await exists(folder, 'manifests')) || (await exists(folder, 'manifests-v2'))) return 'ollama'
    return (await exists(folder, 'refs')) && (await exists(folder, 'snapshots')) ? 'ramalama' : undefined
  }

  /** In a flat cache of llama.cpp: its documents lie beside the file. */
  async #isFlatFile(path: string, folder: string): Promise<boolean> {
    if (!path.endsWith('.gguf')) return false
    if ((await exists(`${path}.json`)) || (await exists(`${path}.etag`))) return true
    return once(this.#isFlat, folder, () => hasManifest(folder))
  }

  /** Downloaded into a folder of the user's by the hub's own client, which notes each file. */
  async #isDownload(path: string, folder: string): Promise<boolean> {
    for (let at = folder; ; at = dirname(at)) {
      const notes = join(at, '.cache/huggingface/download')
      if (await once(this.#hasDownloads, at, () => exists(notes)))
        if (await exists(notes, `${path.slice(at.length)}.metadata`)) return true
      if (at === dirname(at)) return false
    }
  }
}

function once<T>(known: Map<string, Promise<T>>, key: string, find: () => Promise<T>): Promise<T> {
  const found = known.get(key) ?? find()
  known.set(key, found)
  return found
}

const exists = (...parts: readonly string[]): Promise<boolean> =>
  lstat(join(...parts)).then(
    () => true,
    () => false
  )

async function hasManifest(folder: string): Promise<boolean> {
  let left = MAX_ENTRIES
  try {
    for await (const { name } of await opendir(folder)) {
      if (LLAMA_MANIFEST.test(name)) return true
      if (--left === 0) break
    }
  } catch {
    // whoever reads the folder's files says why
  }
  return false
}
