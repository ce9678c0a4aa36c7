import { stat } from 'node:fs/promises'
import { within } from '@svc/internal-clock'
import { type Check, type Found, say } from './finding.ts'

/** As in the daemon: a file that others may read or modify is no secret. */
const TOO_OPEN = 0o037
/** Object stores refuse signatures that are older, or from the future. */
const REFUSED_MS = 15 * 60_000
const NOTABLE_MS = 5 * 60_000
const ASK_MS = 3_000

/** The keys for `[webseed."https://…"]`: whether they work, and whether the clocks of their servers are right. */
export const buckets: Check = async ({ status, clock }) => {
  const found: Found[] = []
  for (const { url, credentialsFile, problem } of status?.swarm.signedWebseeds ?? []) {
    if (problem !== undefined) found.push(say.bad(problem, await adviceOn(credentialsFile)))
    else found.push(say.ok(`${url}: the key of ${credentialsFile ?? "the daemon's environment"}`))
    const { serverDate } = await import('@svc/publish')
    try {
      const date = await within(clock, ASK_MS, undefined, (signal) => serverDate(url, signal))
      found.push(...judgeSkew(url, date, clock.now()))
    } catch {
      found.push(say.note(`${url} does not answer from here; the daemon may use another proxy`))
    }
  }
  return found
}

/** The daemon knows whether a key works: it may run as another user, and only that one can read the file. */
async function adviceOn(credentialsFile: string | undefined): Promise<string> {
  const stats = credentialsFile === undefined ? undefined : await stat(credentialsFile).catch(() => undefined)
  return stats?.isFile() && (stats.mode & TOO_OPEN) !== 0
    ? `chmod 600 ${credentialsFile}`
    : 'svcd --check, in the environment of the daemon, says more'
}

/** Compares the clocks, by the `Date` of an answer. */
export function judgeSkew(url: string, date: string | undefined, nowMs: number): Found[] {
  const thereMs = Date.parse(date ?? '')
  if (Number.isNaN(thereMs)) return []
  const offMs = Math.abs(thereMs - nowMs)
  const text = `the clock of ${url} is ${Math.round(offMs / 60_000)} minutes off this machine's`
  if (offMs >= REFUSED_MS)
    return [say.bad(`${text}: signatures are refused`, 'set the clock (timedatectl set-ntp true)')]
  return offMs >= NOTABLE_MS ? [say.warn(text, 'set the clock (timedatectl set-ntp true)')] : []
}
