import type { StorePlace } from '@svc/library/parts'
import { configPath, type Environment, loadConfig } from '../config/config.ts'
import { writeKey } from '../config/edit.ts'
import { StartError } from '../errors.ts'
import type { Flags } from '../flags.ts'
import { lookAtStore, openStore } from '../store-opening.ts'

/**
 * `svcd expect`: writes the id of the configured store into the configuration, as `[store] expect`, so that no other
 * store is opened, and none made, where this one is not mounted (spec disk.23). A store that is not there yet is made.
 * @returns the line to print. @throws StartError
 */
export async function expectCommand(words: readonly string[], flags: Flags, env: Environment): Promise<string> {
  if (words.length > 0) throw new StartError('usage: svcd expect')
  const { store } = await loadConfig(flags, env)
  const { file } = configPath(flags, env)
  const { id, isNew } = await identified(store)
  if (store.expect === undefined) await writeKey(file, { store: { expect: id } })
  return `${file} expects the store ${id} at ${store.root}${isNew ? ', which was created just now' : ''}`
}

async function identified(store: StorePlace): Promise<{ readonly id: string; readonly isNew: boolean }> {
  // a running daemon, which holds the lock, has made the id
  const { id } = await lookAtStore(store)
  if (id !== undefined) return { id, isNew: false }
  const opened = await openStore(store, { hashThreads: 1 })
  await opened.close()
  return opened
}
