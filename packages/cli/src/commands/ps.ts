import { realpathSync } from 'node:fs'
import { isTerminal } from '@svc/client'
import { count, formatSince } from '../format.ts'
import { readManifestBlob } from '../models/documents.ts'
import { membersOf, type StoredMember } from '../models/models-here.ts'
import { type FileUser, usersOfFilesIn } from '../models/open-files.ts'
import { subjectOf } from '../progress.ts'
import type { Session } from '../session.ts'

/** Who uses a model now. */
interface ModelUser {
  /** `ns/name:quant`, or the digest of one without a name. */
  readonly model: string
  readonly kind: 'process' | 'hold' | 'job' | 'peers'
  /** For people: a program, or what the daemon does. */
  readonly who: string
  /** The process id, or the job's id. */
  readonly id?: string
  /** RFC 3339. */
  readonly since?: string
}

/** `svc ps`: programs that have a model open, commands that hold one, jobs, and peers that fetch. */
export async function ps(session: Session): Promise<void> {
  const { client, clock } = session
  const [status, inventory, views, jobs] = await Promise.all([
    client.status(),
    client.models(),
    client.views(),
    client.jobs()
  ])
  const members = membersOf(inventory)
  const nameOf = (manifest: string): string =>
    members.find((member) => member.manifest === manifest)?.ref ?? `any/name@${manifest}`
  const users = usersOfFilesIn(realpathSync(status.root)).filter(({ pid }) => pid !== status.pid && pid !== process.pid)
  const holders: ModelUser[] = await processes(session, users, members)
  for (const { heldUntil, manifestDigest } of views) {
    const model = nameOf(manifestDigest)
    if (heldUntil !== undefined && !holders.some((each) => each.model === model))
      holders.push({ model, kind: 'hold', who: 'svc run or svc exec' })
  }
  for (const job of jobs)
    if (!isTerminal(job))
      holders.push({
        model: subjectOf(job),
        kind: 'job',
        who: `${job.kind}, ${job.state}`,
        id: job.id,
        since: job.createdAt
      })
  for (const { manifestDigest, peers, name, ref } of status.swarm.torrents)
    if (peers > 0)
      holders.push({
        model: ref?.replace('svc:///', '') ?? (manifestDigest === undefined ? name : nameOf(manifestDigest)),
        kind: 'peers',
        who: count(peers, 'peer')
      })
  if (session.json) return session.document({ holders })
  if (holders.length === 0) return session.note('nobody uses a model now')
  const since = (at: string | undefined): string => (at === undefined ? '' : formatSince(at, clock.now()))
  const rows = holders.map((each) => [each.model, each.who, each.id ?? '', since(each.since)])
  session.table(session.quiet ? rows : [['MODEL', 'USED BY', 'PID OR JOB', 'SINCE'], ...rows])
}

/** The models whose files processes have open. */
async function processes(
  { client }: Session,
  users: readonly FileUser[],
  members: readonly StoredMember[]
): Promise<ModelUser[]> {
  if (users.length === 0) return []
  const holders: ModelUser[] = []
  for (const { ref, manifest } of members) {
    const { files = [] } = await readManifestBlob(client, manifest)
    const hexes = files.map(({ digest }) => digest.replace('sha256:', ''))
    // a blob's path has its digest in two parts
    for (const { pid, program, startedAtMs, paths } of users)
      if ([...paths].some((path) => hexes.some((hex) => path.replaceAll('/', '').endsWith(hex))))
        holders.push({
          model: ref,
          kind: 'process',
          who: program,
          id: `${pid}`,
          since: new Date(startedAtMs).toISOString()
        })
  }
  return holders
}
