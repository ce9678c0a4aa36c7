import { statSync } from 'node:fs'
import type { Status, SwarmStatus, TorrentStatus } from '@svc/client'
import { parseRef } from '@svc/ref'
import { CliError } from '../errors.ts'
import { count, formatBytes, formatTime, shortDigest, spokenAddress } from '../format.ts'
import { membersOf, type StoredMember } from '../models/models-here.ts'
import { canonicalRef, shortRef } from '../models/reference.ts'
import { daemonLogPath } from '../service/background.ts'
import type { Session } from '../session.ts'

export async function status(session: Session): Promise<void> {
  const all = await session.client.status()
  if (session.json) return session.document(all)
  const { jobs, store, swarm } = all
  const members = membersOf(await session.client.models())
  const free = store.freeBytes === undefined ? '' : `, ${formatBytes(store.freeBytes)} free`
  const incomplete = members.filter(({ complete, away }) => !complete && away !== true).length
  const rows = [
    ['daemon', `svcd ${all.version}, pid ${all.pid}, since ${formatTime(all.startedAt)}`],
    ['socket', session.client.socketPath],
    ...logRow(session, all),
    ['store', `${all.root}${store.id === undefined ? '' : ` (${store.id})`}`],
    ['models', `${members.length}${incomplete > 0 ? `, ${incomplete} of them not complete` : ''}`],
    ['disk', `${formatBytes(store.bytes)} in ${count(store.blobs, 'file')}${free}`],
    ...leftoverRows(store),
    ['jobs', `${jobs.fetching} running, ${jobs.waiting} waiting, ${jobs.done} done, ${jobs.failed} failed`],
    ['swarm', swarmLine(swarm, members)]
  ]
  session.table(rows)
  for (const { file, what } of all.damaged ?? []) session.note(`${file}: ${what}`)
}

/** The log that a daemon in the background writes; that of a service, or at a terminal, is elsewhere. */
function logRow({ terminal }: Session, { startedAt }: Status): string[][] {
  const path = daemonLogPath(terminal.env)
  const changedMs = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.mtimeMs
  return path === undefined || changedMs === undefined || changedMs < Date.parse(startedAt) ? [] : [['log', path]]
}

/** What takes space and belongs to no model. */
function leftoverRows({ unfinished, quarantined }: Status['store']): string[][] {
  const row = (name: string, found: Status['store']['unfinished'], what: string): string[][] =>
    found === undefined ? [] : [[name, `${formatBytes(found.bytes)} in ${count(found.files, 'file')}; ${what}`]]
  return [
    ...row('unfinished', unfinished, 'the same command goes on, svc gc --partial frees them'),
    ...row('corrupt', quarantined, 'moved aside; svc gc --partial frees them')
  ]
}

/** What is shared with others, in a line. */
export function swarmLine(swarm: SwarmStatus, members: readonly StoredMember[]): string {
  if (!swarm.enabled) return 'off ([swarm] enabled = false)'
  const parts = [swarm.seed ? `sharing ${count(swarm.seeding, 'model')}` : 'fetching only ([swarm] seed = false)']
  parts.push(count(swarm.peers, 'peer'))
  if (swarm.heldBack.length > 0) parts.push(`${swarm.heldBack.length} held back`)
  const known = new Set([...swarm.torrents, ...swarm.heldBack].map(({ manifestDigest }) => manifestDigest))
  const later = members.filter((each) => each.complete && !each.private && !known.has(each.manifest)).length
  if (swarm.verifying !== undefined) {
    const { artifactsDone, artifactsTotal, bytesDone, bytesTotal } = swarm.verifying
    parts.push(
      `verifying ${artifactsDone} of ${count(artifactsTotal, 'model')}, ${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`
    )
  } else if (swarm.seed && later > 0) parts.push(`${later} more from the next start on`)
  return parts.join(', ')
}

const rate = (bytesPerSecond: number): string => `${formatBytes(bytesPerSecond)}/s`

export async function swarm(session: Session): Promise<void> {
  const { swarm: state } = await session.client.status()
  if (session.json) return session.document(state)
  const members = membersOf(await session.client.models())
  session.print(swarmLine(state, members))
  if (!state.enabled) return
  const names = new Map(members.map(({ manifest, ref }) => [manifest, ref]))
  const nameOf = (digest: string | undefined): string | undefined =>
    digest === undefined ? undefined : (names.get(digest) ?? `without a name, @${shortDigest(digest)}`)
  session.print(`down ${rate(state.downBytesPerSecond)}, up ${rate(state.upBytesPerSecond)}`)
  if (state.peerAddress !== undefined) session.print(`peers connect to ${spokenAddress(state.peerAddress)}`)
  if (state.webseedAddress !== undefined) session.print(`over HTTP: ${spokenAddress(state.webseedAddress)}`)
  if (state.torrents.length > 0) {
    const rows = state.torrents.map((torrent: TorrentStatus) => [
      torrent.ref ?? nameOf(torrent.manifestDigest) ?? torrent.name,
      torrent.state,
      torrent.sizeBytes === undefined ? '' : formatBytes(torrent.sizeBytes),
      `${torrent.peers}`,
      rate(torrent.downBytesPerSecond),
      rate(torrent.upBytesPerSecond),
      formatBytes(torrent.uploadedBytes)
    ])
    const head = ['MODEL', 'STATE', 'SIZE', 'PEERS', 'DOWN', 'UP', 'UPLOADED']
    session.table([head, ...rows])
  }
  for (const held of state.heldBack)
    session.print(`held back: ${held.ref ?? nameOf(held.manifestDigest)}: ${held.reason}`)
}

/** @throws CliError for a model that is withheld, with the way to share it */
async function requireGiven({ client }: Session, ref: string): Promise<void> {
  const { doors } = await client.why(ref)
  const withheld = doors.find(({ door }) => door === 'swarm')?.withheld
  if (withheld === undefined) return
  const name = shortRef(ref)
  const hint = withheld.fact === 'restricted' ? undefined : `svc private ${name} --off, then svc share ${name}`
  throw new CliError('usage', `${name} is not shared: ${withheld.reason.replaceAll('REF', name)}`, { hint })
}

/** `svc share REF`: announces the model and prints what the other side needs, obstacles first. */
export async function share(session: Session, text: string): Promise<void> {
  const ref = await canonicalRef(session, text)
  const shared = await session.client.joinShare(ref)
  if (!shared.announced) await requireGiven(session, ref)
  if (session.json) return session.document(shared)
  if (shared.note !== undefined)
    session.note(shared.announced ? `careful: ${shared.note}` : `nobody can fetch it now: ${shared.note}`)
  const { ns, name, quant } = parseRef(ref)
  const command = quant === undefined ? shared.command : `${shared.command} --as ${ns}/${name}`
  if (session.quiet) return session.print(command)
  if (shared.announced)
    session.print(`${shortRef(ref)} is shared now, from ${[...shared.peers, ...shared.webseeds].join(', ')}`)
  session.print(`${shared.announced ? 'To' : 'Then, to'} fetch it, run this on another machine with svcd:`)
  session.print()
  session.print(`  ${command}`)
}
