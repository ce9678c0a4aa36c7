import { realpath } from 'node:fs/promises'
import type { Models } from '@svc/internal-models'
import { LibraryError } from '@svc/internal-state'
import { type LibraryOptions, openLibrary } from './open-library.ts'

/** Which store, and whose socket is asked if another process owns it. */
export interface ConnectOptions extends LibraryOptions {
  /** Of the daemon that has the store; default: that of this user. */
  readonly socketPath?: string | undefined
}

/**
 * The store in this process if nobody owns it, else that of the daemon that does. What either opened is neither collected nor
 * evicted before `close`, or the end of this process.
 * @throws LibraryError `E_LOCKED` if its owner is no daemon on that socket; as `openLibrary`
 */
export async function openOrConnect({ socketPath, ...options }: ConnectOptions): Promise<Models> {
  try {
    return await openLibrary(options)
  } catch (error) {
    if (!(error instanceof LibraryError) || error.code !== 'E_LOCKED') throw error
    return (await connected(options.root, socketPath)) ?? Promise.reject(error)
  }
}

async function connected(root: string, socketPath: string | undefined): Promise<Models | undefined> {
  const { createClient, modelsOf } = await import('@svc/client')
  const client = createClient({ socketPath })
  try {
    const status = await client.status()
    if ((await realpath(status.root)) === (await realpath(root))) return modelsOf(client)
  } catch {
    // whoever owns it is no daemon that can be asked
  }
  client.close()
  return undefined
}
