import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Clock } from '@svc/internal-clock'
import type { FoundModel } from '@svc/view'
import { canonicalRef } from '../models/reference.ts'
import type { Session } from '../session.ts'
import type { AdoptableModel, ReadCache } from './found-models.ts'

/** How often the folders of other tools are looked at, in milliseconds: not every file system says what changes. */
export const LOOK_MS = 3_000

/** Tells models that came, or changed, since the look before. */
export class Downloads {
  #before = new Map<string, string>()
  #told = new Map<string, string>()
  readonly #clock: Pick<Clock, 'now'>

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  /** The caches with only the models that were not told before, and that nobody writes: two looks found the same files. */
  async look(caches: readonly ReadCache[]): Promise<ReadCache[]> {
    const now = new Map<string, string>()
    const came: ReadCache[] = []
    for (const cache of caches) {
      const wanted: FoundModel[] = []
      for (const model of cache.wanted) {
        const key = JSON.stringify([cache.root.path, model.tool, model.source])
        const stamp = await stampOf(model, this.#clock.now())
        // not comparable with the next look
        now.set(key, stamp ?? '')
        if (stamp === undefined || this.#before.get(key) !== stamp || this.#told.get(key) === stamp) continue
        this.#told.set(key, stamp)
        wanted.push(model)
      }
      came.push({ ...cache, wanted, others: [...cache.others, ...cache.wanted.filter((one) => !wanted.includes(one))] })
    }
    this.#before = now
    return came
  }
}

/** What tells two states of a model's files apart; undefined while a program still writes one. */
async function stampOf({ files }: FoundModel, nowMs: number): Promise<string | undefined> {
  const stamps: unknown[] = []
  for (const { path, expectedSha256 } of files) {
    const stats = await stat(path).catch(() => undefined)
    if (expectedSha256 === undefined && stats !== undefined && (await isWritten(path, stats, nowMs))) return undefined
    stamps.push([path, stats?.size, stats?.mtimeMs, stats?.ino])
  }
  return JSON.stringify(stamps)
}

/** For as long after a write, a file with holes is one that a program has reserved and fills. */
const FILLED_MS = 10 * 60_000

/** A small file may take no blocks at all. */
const MAX_INLINE_BYTES = 1 << 20

/** Where the cache has no digest: whether a program says so beside the file, or has left holes in it lately. */
async function isWritten(path: string, { blocks, size, mtimeMs }: Stats, nowMs: number): Promise<boolean> {
  if (await stat(`${path}.aria2`).catch(() => undefined)) return true
  return size > MAX_INLINE_BYTES && blocks * 512 < size && nowMs - mtimeMs < FILLED_MS
}

/** Those that the store does not have under the name that they would get. Files without a digest count by their size. */
export async function notHere(session: Session, models: readonly AdoptableModel[]): Promise<AdoptableModel[]> {
  const { client } = session
  const absent: AdoptableModel[] = []
  for (const model of models) {
    const here = new Map<string | number, unknown>()
    for (const quant of model.quants) {
      const opened = await canonicalRef(session, `${model.as}:${quant}`)
        .then((ref) => client.open(ref))
        .catch(() => undefined)
      for (const file of opened?.files ?? []) here.set(file.digest, file).set(file.size, file)
    }
    const weights = model.found.files.filter(({ name }) => /\.(gguf|safetensors)$/i.test(name))
    const isHere = weights.every(({ expectedSha256, sizeBytes }) => here.has(expectedSha256 ?? sizeBytes))
    if (here.size === 0 || !isHere) absent.push(model)
  }
  return absent
}
