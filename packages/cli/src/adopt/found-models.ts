import { glob, readdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, sep } from 'node:path'
import { ClientError } from '@svc/client'
import {
  type CacheRoot,
  type FoundModel,
  type FoundWarning,
  findCaches,
  readCache,
  type Tool,
  type TransferCost,
  transferCost
} from '@svc/view'
import { CliError, usage } from '../errors.ts'
import { membersOf } from '../models/models-here.ts'
import type { Session } from '../session.ts'
import { type AdoptFlags, adoptBody } from './body.ts'
import { Names } from './names.ts'

export interface AdoptableModel {
  readonly found: FoundModel
  /** The root folder of the tool's cache. */
  readonly root: string
  /** The name to import it under, `ns/name`. */
  readonly as: string
  /** Empty if the daemon cannot tell. */
  readonly quants: readonly string[]
  /** Those of its references that certainly are other models here, judged by the digests in the cache. */
  readonly taken: readonly string[]
  /** Bytes that the store already has, judged by the digests in the cache. */
  readonly hereBytes: number
  /** Bytes that an earlier model of the list brings in. */
  readonly sharedBytes: number
  /** Bytes that would be copied. */
  readonly takesBytes: number
  readonly by: TransferCost['by']
}

export interface FoundModels {
  readonly models: readonly AdoptableModel[]
  /** Files of models that are not imported, such as those of older snapshots; imported models may use them, too. */
  readonly usedElsewhere: readonly string[]
  readonly warnings: readonly FoundWarning[]
}

/**
 * The models in the caches of the named tools and in the named folders; of all tools if none is named. Of a repository
 * with several commits only one is listed: that of `main`, or the first. @throws CliError for a folder within the store
 */
export async function foundModels(
  session: Session,
  named: readonly (Tool | { readonly path: string })[],
  options: AdoptFlags
): Promise<FoundModels> {
  const { root: store } = await session.client.status()
  const models: AdoptableModel[] = []
  const brought = new Set<string>()
  const names = new Names()
  const here = new Set(membersOf(await session.client.models()).map(({ ref }) => ref))
  const warnings: FoundWarning[] = []
  const usedElsewhere: string[] = []
  for (const root of await rootsOf(session, named)) {
    if (root.path === store || root.path.startsWith(store + sep) || store.startsWith(root.path + sep))
      throw usage(`${root.path} is the store, or contains it`)
    const cache = await readCache(root)
    warnings.push(...cache.warnings)
    const cost = await costOf(cache.models, store)
    const chosen = firstOfEach(cache.models)
    const others = cache.models.filter((model) => !chosen.includes(model))
    usedElsewhere.push(...others.flatMap(({ files }) => files.map(({ path }) => path)))
    for (const found of chosen) {
      const { hereBytes, sharedBytes } = await bytesSpared(session, found, brought)
      const quants = await quantsOf(session, found, options)
      const as = await names.of(found, quants)
      const taken: string[] = []
      for (const ref of quants.map((quant) => `${as}:${quant}`))
        if (here.has(ref) && (await isAnother(session, ref, found))) taken.push(ref)
      const takesBytes = cost === 'reflink' ? 0 : Math.max(0, found.sizeBytes - hereBytes - sharedBytes)
      models.push({ found, root: cache.root.path, as, quants, taken, hereBytes, sharedBytes, takesBytes, by: cost })
    }
  }
  return { models, usedElsewhere, warnings }
}

/** Whether a model here has none of the files of a found one. */
async function isAnother({ client }: Session, ref: string, { files }: FoundModel): Promise<boolean> {
  const known = files.flatMap(({ expectedSha256 }) => expectedSha256 ?? [])
  if (known.length === 0) return false
  const held = new Set((await client.open(`svc:///${ref}`)).files.map(({ digest }) => digest))
  return !known.some((digest) => held.has(digest))
}

/** The quants that an import makes; none if it would fail, and then the import says why. */
async function quantsOf({ client }: Session, found: FoundModel, options: AdoptFlags): Promise<readonly string[]> {
  const { ns, name } = found.suggested
  try {
    return (await client.planAdopt(adoptBody(found, `${ns}/${name}`, found.files, options))).quants
  } catch (error) {
    if (error instanceof CliError || (error instanceof ClientError && error.status !== undefined)) return []
    throw error
  }
}

async function rootsOf(session: Session, named: readonly (Tool | { readonly path: string })[]): Promise<CacheRoot[]> {
  const { env } = session.terminal
  const caches = await findCaches({ home: env.HOME ?? homedir(), env })
  if (named.length === 0) return caches
  const roots: CacheRoot[] = []
  for (const source of named) {
    if (typeof source === 'object') roots.push({ tool: await toolOf(source.path), path: source.path })
    else {
      const own = caches.filter(({ tool }) => tool === source)
      if (own.length === 0) session.note(`${source} has no models here`)
      roots.push(...own)
    }
  }
  return roots
}

/** The tool that a cache folder belongs to, judged by files that every cache of that tool has. */
async function toolOf(path: string): Promise<Tool> {
  const names = await readdir(path).catch((): string[] => [])
  if (names.some((name) => name.startsWith('models--'))) return 'hf'
  if (names.some((name) => /^manifest=[^=]+=[^=]+=[^=]*\.json$/.test(name))) return 'llama'
  if (!names.includes('blobs')) return (await isRamaLama(path, names)) ? 'ramalama' : 'dir'
  if (names.includes('models.json')) return 'dmr'
  return names.includes('manifests') || names.includes('manifests-v2') ? 'ollama' : 'dir'
}

/** The top-level folders that this tool has per kind of source, each with `…/refs/<tag>.json` some levels below. */
const RAMALAMA_KINDS = ['huggingface', 'hf', 'ollama', 'oci', 'modelscope', 'file', 'http', 'https', 'rlcr']

async function isRamaLama(path: string, names: readonly string[]): Promise<boolean> {
  for (const kind of names.filter((name) => RAMALAMA_KINDS.includes(name))) {
    for await (const found of glob('{*,*/*,*/*/*,*/*/*/*}/refs/*.json', { cwd: join(path, kind) }))
      if (found !== '') return true
  }
  return false
}

/** A hub cache has a snapshot per commit, that of `main` first. Others would only replace it under the same name. */
function firstOfEach(models: readonly FoundModel[]): FoundModel[] {
  const seen = new Set<string>()
  return models.filter(({ tool, source }) => {
    if (tool !== 'hf' || !seen.has(source)) return seen.add(source)
    return false
  })
}

/** Tried with one file per cache: it nearly always lies on one file system, otherwise this is only an estimate. */
async function costOf(models: readonly FoundModel[], store: string): Promise<TransferCost['by']> {
  const largest = models.flatMap(({ files }) => files).toSorted((a, b) => b.sizeBytes - a.sizeBytes)[0]
  if (largest === undefined) return 'copy'
  return transferCost(largest.path, store).then(
    ({ by }) => by,
    () => 'copy'
  )
}

/** Bytes that need no copy, as far as the cache has digests. Adds this model's digests to `brought`. */
async function bytesSpared(
  { client }: Session,
  { files }: FoundModel,
  brought: Set<string>
): Promise<{ readonly hereBytes: number; readonly sharedBytes: number }> {
  const known = new Map(files.map(({ expectedSha256, sizeBytes }) => [expectedSha256, sizeBytes]))
  let [hereBytes, sharedBytes] = [0, 0]
  for (const [digest, sizeBytes] of known) {
    if (digest === undefined) continue
    if (brought.has(digest)) {
      sharedBytes += sizeBytes
      continue
    }
    try {
      if ((await client.headBlob(digest)).sizeBytes === sizeBytes) hereBytes += sizeBytes
    } catch (error) {
      if (!(error instanceof ClientError) || error.code !== 'E_NOT_FOUND') throw error
      brought.add(digest)
    }
  }
  return { hereBytes, sharedBytes }
}
