import { setTimeout as delay } from 'node:timers/promises'

/**
 * Resolves once `holds`, for what tells nobody when it happens. The test's own timeout is the only one: a busy machine takes as long as
 * it takes.
 * @param between called after each look that was in vain
 */
export async function until(holds: () => unknown, between?: () => Promise<unknown>): Promise<void> {
  while (!holds()) {
    await delay(5)
    await between?.()
  }
}
