import { type CacheFolder, countOf, isObject, textOf } from './cache-folder.ts'
import type { FoundModel } from './found.ts'
import { type Expectation, ModelDraft } from './model-draft.ts'
import { modelBase } from './model-names.ts'

/**
 * The flat cache of llama.cpp from before it adopted the hub's: `org_name_file.gguf`, with metadata in
 * `manifest=org=name=tag.json` and `<file>.json`.
 */
export async function* readLlamaCache(folder: CacheFolder): AsyncGenerator<FoundModel> {
  const names = (await folder.list('')).map(({ name }) => name)
  const manifests = await readManifests(folder, names)
  const found: (LlamaOrigin & { readonly file: string })[] = []
  for (const file of names.filter((name) => name.endsWith('.gguf'))) {
    const origin = manifests.get(file) ?? (await originByUrl(folder, names, file)) ?? originByName(manifests, file)
    found.push({ file, ...(origin ?? { repo: modelBase(file), name: file, expected: {} }) })
  }
  for (const [repo, files] of Map.groupBy(found, (each) => each.repo)) {
    const draft = new ModelDraft('llama', repo, folder)
    for (const { file, name, expected } of files) await draft.add(name, file, expected)
    const [org, name] = repo.split('/') as [string, string?]
    yield* name === undefined
      ? draft.finish({ ns: 'llama', name: org })
      : draft.finish({ ns: org, name }, { hub: { repo } })
  }
}

interface LlamaOrigin {
  readonly repo: string
  readonly name: string
  readonly expected: Expectation
}

const flat = (repo: string, name: string): string => `${repo}/${name}`.replaceAll('/', '_')

/** The hub's metadata of files, by their names in the cache. */
async function readManifests(folder: CacheFolder, names: readonly string[]): Promise<Map<string, LlamaOrigin>> {
  const origins = new Map<string, LlamaOrigin>()
  for (const document of names) {
    const [, org, model] = /^manifest=([^=]+)=([^=]+)=[^=]*\.json$/.exec(document) ?? []
    if (org === undefined || model === undefined) continue
    const repo = `${org}/${model}`
    const manifest = await folder.json(document)
    for (const key of ['ggufFile', 'mmprojFile']) {
      const file = manifest?.[key]
      const name = isObject(file) ? textOf(file.rfilename) : undefined
      if (!isObject(file) || name === undefined) continue
      const sha256 = isObject(file.lfs) ? textOf(file.lfs.sha256) : undefined
      origins.set(flat(repo, name), { repo, name, expected: { sizeBytes: countOf(file.size), sha256 } })
    }
  }
  return origins
}

/** From the URL in `<file>.json`. */
async function originByUrl(
  folder: CacheFolder,
  names: readonly string[],
  file: string
): Promise<LlamaOrigin | undefined> {
  if (!names.includes(`${file}.json`)) return undefined
  const url = textOf((await folder.json(`${file}.json`))?.url) ?? ''
  const [, repo, name] = /^https?:\/\/[^/]+\/([^/?#]+\/[^/?#]+)\/resolve\/[^/?#]+\/([^?#]+)/.exec(url) ?? []
  return repo === undefined || name === undefined ? undefined : { repo, name, expected: {} }
}

/** Later shards have no metadata of their own: their names start with that of a known repository. */
function originByName(manifests: ReadonlyMap<string, LlamaOrigin>, file: string): LlamaOrigin | undefined {
  const repo = [...manifests.values()].find((origin) => file.startsWith(flat(origin.repo, '')))?.repo
  return repo === undefined ? undefined : { repo, name: file.slice(flat(repo, '').length), expected: {} }
}
