import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { errnoOf } from '@svc/internal-errors'
import { ioError, ViewError } from './errors.ts'
import { type Marker, markerPath, modelsOf, readReplaceable, steadily } from './marker.ts'

const MAX_NAMED = 20
/** Files that the hub's clients write next to a model's; they are useless without those. */
const HUB_LEAVINGS = /^(?:\.locks\/|models--[^/]+\/(?:\.no_exist|refs|trees)\/)/

/**
 * The view at a place, if there is one, after a check for files in it that are not its own.
 * @throws ViewError `E_NOT_A_VIEW`, `E_IO`.
 */
export async function readOwnView(path: string): Promise<Marker | undefined> {
  return steadily(path, async () => {
    const marker = await readReplaceable(path)
    if (marker !== undefined) await checkOnlyOwnFiles(path, marker)
    return marker
  })
}

/**
 * Checks that a view contains only its own files, so that nobody loses a file they stored there. Links are inspected,
 * never followed.
 * @throws ViewError `E_NOT_A_VIEW` with up to 20 of the other files as `details.candidates`, `E_IO`.
 */
async function checkOnlyOwnFiles(path: string, marker: Marker): Promise<void> {
  const own = new Set([markerPath(marker.layout)])
  for (const { files, others } of modelsOf(marker))
    for (const at of [...files.map((file) => file.at), ...others]) own.add(at)
  const unknown: string[] = []
  const visit = async (folder: string): Promise<void> => {
    for (const entry of await readdir(join(path, folder), { withFileTypes: true })) {
      const at = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (unknown.length === MAX_NAMED) return
      if (entry.isDirectory()) await visit(at)
      else if (!own.has(at) && !(marker.layout === 'hf' && HUB_LEAVINGS.test(at))) unknown.push(at)
    }
  }
  try {
    await visit('')
  } catch (error) {
    // removed or replaced by another process in the meantime.
    if (errnoOf(error) === 'ENOENT') return
    throw ioError(error, 'look through the view', path)
  }
  if (unknown.length === 0) return
  const message =
    `${path} is a view, but contains files that svc did not make (${unknown.slice(0, 3).join(', ')}); ` +
    'move them elsewhere first'
  throw new ViewError('E_NOT_A_VIEW', message, { path, candidates: unknown })
}
