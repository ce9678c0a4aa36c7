import { formatBytes } from '../format.ts'
import type { Session } from '../session.ts'

const SAY_MS = 5_000

/**
 * Reports the progress of a transfer that `svc` itself makes. @returns a function to call with the bytes of each step
 */
export function meter(session: Session, verb: string, totalBytes: number): (bytes: number) => void {
  let done = 0
  let saidAt = performance.now()
  return (bytes) => {
    done += bytes
    if (performance.now() - saidAt < SAY_MS) return
    saidAt = performance.now()
    session.note(`${verb} ${formatBytes(Math.min(done, totalBytes))} of ${formatBytes(totalBytes)}`)
  }
}
