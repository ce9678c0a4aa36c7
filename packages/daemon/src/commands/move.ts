import { CasError } from '@svc/cas'
import { checkPlaces, LibraryError, type MoveResult, moveStore, spokenBytes } from '@svc/library/parts'
import { configPath, type Environment, loadConfig } from '../config/config.ts'
import { checkKeyWritable, writeKey } from '../config/edit.ts'
import { StartError } from '../errors.ts'
import type { Flags } from '../flags.ts'
import { orRefused } from '../store-opening.ts'
import { stoppably } from './copy-progress.ts'

/**
 * `svcd move DIR`: moves the configured store, and writes the new root into the configuration; says so where a flag or
 * `SVC_ROOT` overrides that. @throws StartError, LibraryError; the exit code is 130 after SIGINT or SIGTERM
 */
export async function moveCommand(words: readonly string[], flags: Flags, env: Environment): Promise<void> {
  const [to, ...rest] = words
  if (to === undefined || to === '' || rest.length > 0) throw new StartError('usage: svcd move DIR')
  const from = (await loadConfig(flags, env)).store
  const places = await orRefused(checkPlaces(from, to))
  const { file } = configPath(flags, env)
  const named = flags.root !== undefined ? '--root' : env.SVC_ROOT ? 'SVC_ROOT' : undefined
  if (named === undefined) await checkKeyWritable(file, { store: { root: places.to } })
  const goOn = `the old store stays in use. To continue: svc move ${places.to}`
  await stoppably(flags, goOn, async (signal, onProgress) => {
    try {
      const takeCharge = async ({ to: root }: Pick<MoveResult, 'to'>): Promise<void> => {
        if (named === undefined) await writeKey(file, { store: { root } })
      }
      const result = await orRefused(moveStore({ from, to: places.to, signal, onProgress, takeCharge }))
      const document = { ...result, configuration: named === undefined ? file : null }
      return { lines: report(result, named, file), document }
    } catch (error) {
      throw error instanceof CasError ? new LibraryError('E_IO', `${error.message}; ${goOn}`, { cause: error }) : error
    }
  })
}

function report(result: MoveResult, named: string | undefined, file: string): string[] {
  const { from, to, blobs, bytes, resumedBlobs, shared, occupiedBytes, views, unfinished } = result
  const before = resumedBlobs === 0 ? '' : `, ${resumedBlobs} of them in an earlier attempt`
  return [
    `the store is at ${to}: ${blobs} blobs, ${spokenBytes(bytes)}, each verified there${before}`,
    named === undefined
      ? `${file} names the new store; start the daemon again`
      : `${named} names the old store and overrides the configuration: start the daemon with ${named === '--root' ? `--root ${to}` : `SVC_ROOT=${to}`}`,
    shared
      ? `the old store at ${from} is unchanged; both share blocks on the disk, so deleting it frees almost nothing`
      : `the old store at ${from} is unchanged; deleting it frees ${spokenBytes(occupiedBytes)}`,
    ...(unfinished === 0
      ? []
      : [`${unfinished} unfinished downloads were not moved; they start again from the beginning`]),
    ...(views.length === 0
      ? []
      : [
          'these views point to the old place; make them again with "svc view" before you delete it:',
          ...views.map((path) => `  ${path}`)
        ])
  ]
}
