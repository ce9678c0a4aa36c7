import { setTimeout as delay } from 'node:timers/promises'

/**
 * Resolves once `holds`, for what tells nobody when it happens. The test's own timeout is the only one: a busy machine takes as long as
 * it takes.
 * @param between called after each look that was in vain
 */
export async function until(holds: () => unknown, between?: () => Promise<unknown>): Promise<void> {
  // what comes soon is noticed at once; what waits for a network is not asked two hundred times a second
  for (let pauseMs = 5; !holds(); pauseMs = Math.min(60, pauseMs * 1.2)) {
    await delay(pauseMs)
    await between?.()
  }
}
