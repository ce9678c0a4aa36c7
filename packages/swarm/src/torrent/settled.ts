import type { EventEmitter } from 'node:events'

/**
 * Resolves when `done` returns true, which is checked at once and after each of the events; rejects with what it
 * throws, or with the signal's reason. All listeners are removed.
 */
export function settled<Events extends Record<keyof Events, unknown[]>>(
  emitter: EventEmitter<Events>,
  events: readonly (keyof Events & string)[],
  signal: AbortSignal | undefined,
  done: () => boolean
): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      for (const event of events) emitter.off(event as never, check as never)
      signal?.removeEventListener('abort', check)
      settle()
    }
    const check = (): void => {
      try {
        if (done()) end(resolve)
        else signal?.throwIfAborted()
      } catch (error) {
        end(() => reject(error))
      }
    }
    for (const event of events) emitter.on(event as never, check as never)
    signal?.addEventListener('abort', check)
    check()
  })
}
