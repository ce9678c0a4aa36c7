import type { SwarmStatus } from '@svc/client/protocol'
import type { Clock } from '@svc/internal-clock'
import type { Log } from '@svc/library/parts'
import { type RuntimeFacts, removeRuntimeFile, writeRuntimeFile } from './runtime-file.ts'

/** Readers consider the file stale when it has not been rewritten for some seconds. */
const REWRITE_MS = 500

/** The content of `runtime.json` from the time the root's lock is held until the socket responds (spec add.30). */
export type StartingFacts = Omit<RuntimeFacts, 'state'>

export interface StartNotice {
  /** Resolves when the last write has ended. */
  end(): Promise<void>
  /** Removes the file after a failed start. */
  withdraw(): Promise<void>
}

/** Reports the progress of a start in `runtime.json`. If the file cannot be written, the start continues. */
export function tellStart(
  path: string,
  facts: StartingFacts,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  verifyingNow: () => SwarmStatus['verifying']
): StartNotice {
  let writing: Promise<void> | undefined
  const write = (): void => {
    const verifying = verifyingNow()
    writing ??= writeRuntimeFile(path, { ...facts, state: 'starting', ...(verifying !== undefined && { verifying }) })
      .catch((error: unknown) => log.debug({ err: error, path }, 'runtime.json cannot be written'))
      .finally(() => (writing = undefined))
  }
  write()
  const timer = clock.every(REWRITE_MS, write)
  const end = async (): Promise<void> => {
    timer.cancel()
    await writing
  }
  return {
    end,
    async withdraw() {
      await end()
      await removeRuntimeFile(path)
    }
  }
}
