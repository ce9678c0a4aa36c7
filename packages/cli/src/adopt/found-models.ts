import { realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { sep } from 'node:path'
import { ClientError } from '@svc/client'
import {
  type CacheRoot,
  type FoundModel,
  type FoundWarning,
  findCaches,
  readCache,
  TOOLS,
  type Tool,
  type TransferCost,
  toolOfCache,
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
  /** Bytes of files that the cache has no digests of: whether they are here is not known before they are read. */
  readonly unknownBytes: number
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

/** A cache as it is now: the models that were asked for, and all others. */
export interface ReadCache {
  readonly root: CacheRoot
  readonly wanted: readonly FoundModel[]
  readonly others: readonly FoundModel[]
  readonly warnings: readonly FoundWarning[]
}

/**
 * Reads the caches of the named tools and the named folders; of all tools if none is named. Of a repository with several
 * commits only one is wanted: that of `main`, or the first. @throws CliError for a folder within the store
 */
export async function readCaches(
  session: Session,
  named: readonly (Tool | { readonly path: string })[]
): Promise<ReadCache[]> {
  const { root: store } = await session.client.status()
  const caches: ReadCache[] = []
  for (const root of await rootsOf(session, named)) {
    if (root.path === store || root.path.startsWith(store + sep) || store.startsWith(root.path + sep))
      throw usage(`${root.path} is the store, or contains it`)
    const { models, warnings } = await readCache(root)
    const wanted = firstOfEach(models.filter((model) => isWanted(model, root.only)))
    caches.push({
      root,
      wanted,
      others: models.filter((model) => !wanted.includes(model)),
      warnings: warnings.filter(({ path }) => !leadsInto(store, path))
    })
  }
  return caches
}

/** Whether a path is a link of a standing view. */
function leadsInto(store: string, path: string): boolean {
  try {
    return realpathSync(path).startsWith(store + sep)
  } catch {
    return false
  }
}

/** What an import of the wanted models of these caches would do. */
export async function foundModels(
  session: Session,
  caches: readonly ReadCache[],
  options: AdoptFlags
): Promise<FoundModels> {
  const { root: store } = await session.client.status()
  const models: AdoptableModel[] = []
  const brought = new Set<string>()
  const names = new Names()
  const here = new Set(membersOf(await session.client.models()).map(({ ref }) => ref))
  for (const { root, wanted } of caches) {
    const cost = await costOf(wanted, store)
    for (const found of wanted) {
      const { hereBytes, sharedBytes } = await bytesSpared(session, found, brought)
      const quants = await quantsOf(session, found, options)
      const as = await names.of(found, quants)
      const taken: string[] = []
      for (const ref of quants.map((quant) => `${as}:${quant}`))
        if (here.has(ref) && (await isAnother(session, ref, found))) taken.push(ref)
      const takesBytes = cost === 'reflink' ? 0 : Math.max(0, found.sizeBytes - hereBytes - sharedBytes)
      const unhashed = found.files.filter((file) => (file.expectedSha256 ?? file.expectedGitSha1) === undefined)
      const unknownBytes = unhashed.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
      const bytes = { hereBytes, unknownBytes, sharedBytes, takesBytes }
      models.push({ found, root: root.path, as, quants, taken, ...bytes, by: cost })
    }
  }
  const usedElsewhere = caches.flatMap(({ others }) => others.flatMap(({ files }) => files.map(({ path }) => path)))
  return { models, usedElsewhere, warnings: caches.flatMap(({ warnings }) => warnings) }
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

/** A repository of a hub cache, and perhaps one commit of it. */
interface HubFolder {
  readonly repo: string
  readonly commit: string | undefined
}

interface NamedRoot extends CacheRoot {
  /** Absent for the whole cache. */
  readonly only?: HubFolder
}

const isWanted = ({ source, hub }: FoundModel, only: HubFolder | undefined): boolean =>
  only === undefined || (source === only.repo && (only.commit === undefined || hub?.revision === only.commit))

/** The hub cache that a folder of one repository, or of one of its snapshots, lies in: links lead out of the folder. */
function hubFolder(path: string): NamedRoot | undefined {
  const [, cache, repo, commit] = /^(.+)\/models--([^/]+)(?:\/snapshots\/([0-9a-f]{40})(?:\/.*)?)?$/.exec(path) ?? []
  if (cache === undefined || repo === undefined) return undefined
  return { tool: 'hf', path: cache, only: { repo: repo.replace('--', '/'), commit } }
}

/** @throws CliError for a path that does not exist, or is a file */
async function rootsOf(session: Session, named: readonly (Tool | { readonly path: string })[]): Promise<NamedRoot[]> {
  const { env } = session.terminal
  const caches = await findCaches({ home: env.HOME ?? homedir(), env })
  if (named.length === 0) return caches
  const roots: NamedRoot[] = []
  for (const source of named) {
    if (typeof source === 'object') {
      requireFolder(source.path)
      roots.push(hubFolder(source.path) ?? { tool: await toolOfCache(source.path), path: source.path })
    } else {
      const own = caches.filter(({ tool }) => tool === source)
      if (own.length === 0) session.note(`${source} has no models here`)
      roots.push(...own)
    }
  }
  return roots
}

/** @throws CliError */
function requireFolder(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) {
    const hint = `name a folder, or one of ${TOOLS.join(', ')}`
    throw new CliError('notFound', `there is no ${path}`, { code: 'E_NOT_FOUND', hint })
  }
  if (!stats.isDirectory()) throw usage(`${path} is a file`, `svc import local ${path} --as ns/name`)
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
