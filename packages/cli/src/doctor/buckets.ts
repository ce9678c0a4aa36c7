import { stat } from 'node:fs/promises'
import { type Check, codeOf, type Finding, findingsOf } from './finding.ts'

/** As the daemon has it: what others may read or modify is no secret. */
const TOO_OPEN = 0o037
/** Object stores refuse signatures that are older, or from the future. */
const REFUSED_MS = 15 * 60_000
const NOTABLE_MS = 5 * 60_000
const ASK_MS = 3_000

/** The keys for `[webseed."https://…"]`: whether they can be used, and whether the store's clock is ours. */
export const buckets: Check = async ({ status, uid }) => {
  const say = findingsOf('buckets')
  const found: Finding[] = []
  for (const { url, credentialsFile, problem } of status?.swarm.signedWebseeds ?? []) {
    const wrong = credentialsFile === undefined ? undefined : await defectOf(credentialsFile, uid)
    if (wrong !== undefined) found.push(wrong)
    else if (problem !== undefined)
      found.push(say.bad(problem, 'svcd --check, in the environment of the daemon, says more'))
    else found.push(say.ok(`${url}: the key of ${credentialsFile ?? "the daemon's environment"}`))
    const answer = await fetch(url, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(ASK_MS) }).catch(
      () => undefined
    )
    if (answer === undefined)
      found.push(say.note(`${url} does not answer here; behind a proxy that is as it should be`))
    else found.push(...judgeSkew(url, answer.headers.get('date'), Date.now()))
  }
  return found
}

/** What is wrong with a file of keys; undefined where the daemon takes it. */
async function defectOf(path: string, uid: number): Promise<Finding | undefined> {
  const say = findingsOf('buckets')
  try {
    const stats = await stat(path)
    if (!stats.isFile()) return say.bad(`${path} is no file`, 'let credentials_file name a file of keys')
    if ((stats.mode & TOO_OPEN) !== 0) return say.bad(`${path} is open to others`, `chmod 600 ${path}`)
    if (![0, uid].includes(stats.uid)) return say.bad(`${path} belongs to somebody else`, `chown ${uid} ${path}`)
    return undefined
  } catch (error) {
    return say.bad(`${path} cannot be read (${codeOf(error)})`, 'write it again, or let credentials_file name another')
  }
}

/** Compares the clocks, by the `Date` of an answer. */
export function judgeSkew(url: string, date: string | null, nowMs: number): Finding[] {
  const say = findingsOf('buckets')
  const thereMs = Date.parse(date ?? '')
  if (Number.isNaN(thereMs)) return []
  const offMs = Math.abs(thereMs - nowMs)
  const text = `the clock of ${url} is ${Math.round(offMs / 60_000)} minutes off ours`
  if (offMs >= REFUSED_MS)
    return [say.bad(`${text}: signatures are refused`, 'set the clock (timedatectl set-ntp true)')]
  return offMs >= NOTABLE_MS ? [say.warn(text, 'set the clock (timedatectl set-ntp true)')] : []
}
