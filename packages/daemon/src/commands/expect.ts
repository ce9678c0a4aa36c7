import { CasError, openDiskStore, readStoreId } from '@svc/cas'
import { configPath, type Environment, loadConfig } from '../config/config.ts'
import { writeKey } from '../config/edit.ts'
import { StartError } from '../errors.ts'
import type { Flags } from '../flags.ts'
import { STATE_FOLDERS } from '../library/replace.ts'

/**
 * `svcd expect`: writes the id of the configured store into the configuration, as `[store] expect`, so that no other
 * store is opened, and none made, where this one is not mounted (spec disk.23). A store that is not there yet is made.
 * @returns the line to print. @throws StartError
 */
export async function expectCommand(words: readonly string[], flags: Flags, env: Environment): Promise<string> {
  if (words.length > 0) throw new StartError('usage: svcd expect')
  const { store } = await loadConfig(flags, env)
  const { file } = configPath(flags, env)
  const { id, isNew } = await identified(store.root, store.expect === undefined)
  if (store.expect !== undefined && store.expect !== id)
    throw new StartError(
      `[store] expect = "${store.expect}" in ${file}, and ${store.root} holds ${id ?? 'none'}; is its disk mounted? If this is the right store, remove the line from the file`
    )
  if (store.expect === undefined && id !== undefined) await writeKey(file, { store: { expect: id } })
  return `${file} expects the store ${id} at ${store.root}${isNew ? ', which was created just now' : ''}`
}

async function identified(
  root: string,
  mayMake: boolean
): Promise<{ readonly id: string | undefined; readonly isNew: boolean }> {
  try {
    const known = readStoreId(root)
    if (known !== undefined || !mayMake) return { id: known, isNew: false }
    const store = await openDiskStore({ root, folders: STATE_FOLDERS, hashThreads: 1 })
    await store.close()
    return store
  } catch (cause) {
    if (!(cause instanceof CasError)) throw cause
    const advice = cause.code === 'E_LOCKED' ? '; its daemon is older than this one: restart it, then try again' : ''
    throw new StartError(`the store ${root} cannot be opened: ${cause.message}${advice}`, { cause })
  }
}
