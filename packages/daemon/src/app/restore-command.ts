import { CasError } from '@svc/cas'
import { type Environment, loadConfig } from '../config/config.ts'
import { StartError } from '../errors.ts'
import { copyProgress, sizeText } from './copy-progress.ts'
import type { Flags } from './flags.ts'
import { RestoreError, restoreStore } from './store-restore.ts'

/** As `svc` has it for what failed verification. */
const DAMAGED = 5

/** `svcd restore SRC`: fills the configured root from a backup, in a folder or a bucket. @throws StartError, RestoreError */
export async function restoreCommand(words: readonly string[], flags: Flags, env: Environment): Promise<void> {
  const [src, ...rest] = words
  if (src === undefined || src === '' || rest.length > 0) throw new StartError('usage: svcd restore SRC [--root DIR]')
  const { store } = await loadConfig(flags, env)
  const lib = await import('@svc/publish')
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort())
  const { signal } = stop
  const progress = copyProgress(process.stderr, flags)
  try {
    const source = await lib.openTarget(lib.parsePlace(src, process.cwd()), { readOnly: true, env })
    try {
      const backup = await lib.openBackup(source, signal)
      const { storeId } = backup.snapshot
      if (store.expect !== undefined && store.expect !== storeId)
        throw new StartError(
          `[store] expect = "${store.expect}", and the backup is of ${storeId}; take the line out of the configuration first`
        )
      const { incomplete } = flags
      const options = { backup, from: source.name, root: store.root, incomplete, signal }
      const result = await restoreStore({
        ...options,
        onProgress: (counts) => progress.tell({ phase: 'restoring', ...counts })
      })
      progress.end()
      const lost = result.damaged.map((key) => `  not restored: ${key}\n`).join('')
      process.stdout.write(
        flags.json
          ? `${JSON.stringify(result)}\n`
          : `the store ${storeId} of ${result.createdAt} is at ${result.root}: ${result.blobs} blobs, ${sizeText(result.bytes)}, each verified\n${lost}`
      )
    } finally {
      await source.close()
    }
  } catch (error) {
    progress.end()
    if (stop.signal.aborted) {
      process.stderr.write('svcd: stopped; run the same command again to go on\n')
      process.exitCode = 130
      return
    }
    const code = error instanceof lib.PublishError ? error.code : undefined
    if (code === 'E_NOT_FOUND' || code === 'E_BAD_TARGET')
      throw new StartError((error as Error).message, { cause: error })
    if (code === 'E_CHECK_FAILED' || (error instanceof RestoreError && error.isDamage)) process.exitCode = DAMAGED
    if (code !== undefined || error instanceof CasError)
      throw new RestoreError((error as Error).message, false, { cause: error })
    throw error
  }
}
