import { setPriority } from 'node:os'

/**
 * Lets the calling worker thread yield to the others of its process: 0 is the usual priority, 19 the lowest. On Linux
 * this sets the priority of the thread; elsewhere it would be that of the whole process, so nothing is done. Raising it
 * again takes privileges.
 */
export function yieldToOthers(nice: number): void {
  if (process.platform !== 'linux' || nice === 0) return
  try {
    // 0 is this thread
    setPriority(0, nice)
  } catch {
    // a sandbox may refuse this; nothing depends on it.
  }
}
