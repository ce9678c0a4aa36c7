import { lstat, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskBlobStore } from '@svc/cas'
import { ifAbsent } from '@svc/internal-errors'
import { listFolderIfPresent } from '@svc/internal-files'

/** Files that take space and belong to no model, and their bytes. */
export interface Leftovers {
  readonly files: number
  readonly bytes: number
}

type Partials = Pick<DiskBlobStore, 'listPartials' | 'abortPartial'>

/** What was written of downloads that have not ended; `isIdle`: only those that nothing writes to now. */
export function unfinished(store: Partials, { isIdle = false }: { readonly isIdle?: boolean } = {}): Leftovers {
  const found = store.listPartials().filter(({ isHeld, writtenBytes }) => writtenBytes > 0 && !(isIdle && isHeld))
  return { files: found.length, bytes: found.reduce((sum, { writtenBytes }) => sum + writtenBytes, 0) }
}

/** Deletes what was written of downloads that nothing writes to now. They begin anew. */
export async function dropUnfinished(store: Partials): Promise<void> {
  for (const { key, isHeld } of store.listPartials()) if (!isHeld) await store.abortPartial(key)
}

/** The corrupt blobs that were moved aside (spec disk.11). */
export async function quarantined({ root }: Pick<DiskBlobStore, 'root'>): Promise<Leftovers> {
  let [files, bytes] = [0, 0]
  for (const path of await quarantinedPaths(root)) {
    const size = (await lstat(path).catch(ifAbsent))?.size
    if (size === undefined) continue
    files++
    bytes += size
  }
  return { files, bytes }
}

/** Deletes them: what was damaged is missing from then on. */
export async function dropQuarantined({ root }: Pick<DiskBlobStore, 'root'>): Promise<void> {
  for (const path of await quarantinedPaths(root)) await rm(path, { force: true })
}

async function quarantinedPaths(root: string): Promise<string[]> {
  const folder = join(root, 'quarantine')
  const names = (await listFolderIfPresent(folder)).map(({ name }) => name)
  return names.filter((name) => /^[0-9a-f]{64}-[0-9a-f]{16}$/.test(name)).map((name) => join(folder, name))
}
