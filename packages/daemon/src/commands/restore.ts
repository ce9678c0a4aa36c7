import { CasError } from '@svc/cas'
import { LibraryError, type RestoreOptions, restoreStore, spokenBytes } from '@svc/library/parts'
import { type Environment, loadConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import type { Flags } from '../flags.ts'
import { orRefused } from '../store-opening.ts'
import { stoppably } from './copy-progress.ts'

/** The exit code of `svc` for a failed verification. */
const DAMAGED = 5

/** `svcd restore SRC`: fills the configured root from a backup, in a folder or a bucket. @throws StartError, LibraryError */
export async function restoreCommand(words: readonly string[], flags: Flags, env: Environment): Promise<void> {
  const [src, ...rest] = words
  if (src === undefined || src === '' || rest.length > 0) throw new StartError('usage: svcd restore SRC [--root DIR]')
  const { store } = await loadConfig(flags, env)
  const lib = await import('@svc/publish')
  await stoppably(flags, 'run the same command again to continue', async (signal, tell) => {
    const source = await lib.openTarget(lib.parsePlace(src, process.cwd()), { readOnly: true, env })
    try {
      const backup = await lib.openBackup(source, signal)
      const { storeId } = backup.snapshot
      if (store.expect !== undefined && store.expect !== storeId)
        throw new StartError(
          `[store] expect = "${store.expect}", but the backup is of ${storeId}; remove the line from the configuration first`
        )
      const { incomplete } = flags
      const onProgress: RestoreOptions['onProgress'] = (counts) => tell({ phase: 'restoring', ...counts })
      const { root, memory, isNew } = store
      const place = { root, memory, isNew }
      const options = { backup, from: source.name, ...place, incomplete, signal, onProgress }
      const result = await orRefused(restoreStore(options))
      const lines = [
        `the store ${storeId} of ${result.createdAt} is at ${result.root}: ${result.blobs} blobs, ${spokenBytes(result.bytes)}, each verified`,
        ...result.damaged.map((key) => `  not restored: ${key}`)
      ]
      return { lines, document: result }
    } finally {
      await source.close()
    }
  }).catch((error: unknown) => {
    const code = error instanceof lib.PublishError ? error.code : undefined
    if (code === 'E_NOT_FOUND' || code === 'E_BAD_TARGET')
      throw new StartError((error as Error).message, { cause: error })
    if (code === 'E_CHECK_FAILED' || (error instanceof LibraryError && error.code === 'E_CORRUPTION'))
      process.exitCode = DAMAGED
    if (code !== undefined || error instanceof CasError)
      throw new LibraryError('E_IO', (error as Error).message, { cause: error })
    throw error
  })
}
