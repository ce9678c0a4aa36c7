import type { SwarmStatus, TorrentStatus } from '@svc/client'
import { parseRef } from '@svc/ref'
import { count, formatBytes, formatTable, shortDigest } from '../format.ts'
import { canonicalRef } from '../reference.ts'
import type { Session } from '../session.ts'

/** `svc status` */
export async function status(session: Session): Promise<void> {
  const all = await session.client.status()
  if (session.json) return session.document(all)
  const { jobs, store, swarm } = all
  const free = store.freeBytes === undefined ? '' : `, ${formatBytes(store.freeBytes)} free`
  const rows = [
    ['daemon', `svcd ${all.version}, pid ${all.pid}, since ${new Date(all.startedAt).toLocaleString('sv')}`],
    ['socket', session.client.socketPath],
    ['root', all.root],
    ['store', `${count(store.blobs, 'blob')}, ${formatBytes(store.bytes)}${free}`],
    ['jobs', `${jobs.fetching} running, ${jobs.waiting} waiting, ${jobs.done} done, ${jobs.failed} failed`],
    ['swarm', swarmLine(swarm)]
  ]
  for (const line of formatTable(rows)) session.print(line)
}

function swarmLine(swarm: SwarmStatus): string {
  if (!swarm.enabled) return 'disabled ([swarm] enabled = false)'
  const parts = [swarm.seed ? `seeding ${swarm.seeding}` : 'fetching only', count(swarm.peers, 'peer')]
  if (swarm.heldBack.length > 0) parts.push(`${swarm.heldBack.length} held back`)
  if (swarm.verifying !== undefined) {
    const { artifactsDone, artifactsTotal, bytesDone, bytesTotal } = swarm.verifying
    parts.push(`verifying ${artifactsDone}/${artifactsTotal}, ${formatBytes(bytesDone)} of ${formatBytes(bytesTotal)}`)
  }
  return parts.join(', ')
}

const rate = (bytesPerSecond: number): string => `${formatBytes(bytesPerSecond)}/s`

/** `svc swarm` */
export async function swarm(session: Session): Promise<void> {
  const { swarm: state } = await session.client.status()
  if (session.json) return session.document(state)
  session.print(swarmLine(state))
  if (!state.enabled) return
  const names = await namesByManifest(session)
  session.print(`down ${rate(state.downBytesPerSecond)}, up ${rate(state.upBytesPerSecond)}`)
  if (state.peerAddress !== undefined)
    session.print(
      `peers connect to ${state.peerAddress.replace(/^(0\.0\.0\.0|\[::\]):/, 'every address of this machine, port ')}`
    )
  if (state.webseedAddress !== undefined) session.print(`webseed at http://${state.webseedAddress}`)
  if (state.torrents.length > 0) {
    const rows = state.torrents.map((torrent: TorrentStatus) => [
      torrent.ref ?? names.get(torrent.manifestDigest ?? '') ?? torrent.name,
      torrent.state,
      torrent.sizeBytes === undefined ? '' : formatBytes(torrent.sizeBytes),
      `${torrent.peers}`,
      rate(torrent.downBytesPerSecond),
      rate(torrent.upBytesPerSecond),
      formatBytes(torrent.uploadedBytes)
    ])
    const head = ['TORRENT', 'STATE', 'SIZE', 'PEERS', 'DOWN', 'UP', 'UPLOADED']
    for (const line of formatTable([head, ...rows])) session.print(line)
  }
  for (const held of state.heldBack) {
    session.print(
      `held back: ${held.ref ?? names.get(held.manifestDigest) ?? shortDigest(held.manifestDigest)}: ${held.reason}`
    )
  }
}

/** A name of each artifact here, by its manifest: people know models by their names. */
async function namesByManifest(session: Session): Promise<ReadonlyMap<string, string>> {
  const { namespaces } = await session.client.models()
  return new Map(
    namespaces.flatMap(({ ns, name, members }) =>
      members.map(({ quant, manifest }) => [manifest, `${ns}/${name}:${quant}`] as const)
    )
  )
}

/** `svc share REF`: announces it, and tells what the other side needs; what stands in the way comes first. */
export async function share(session: Session, text: string): Promise<void> {
  const ref = await canonicalRef(session, text)
  const shared = await session.client.joinShare(ref)
  if (session.json) return session.document(shared)
  if (shared.note !== undefined)
    session.note(shared.announced ? `careful: ${shared.note}` : `nobody can fetch it now: ${shared.note}`)
  const { ns, name, quant } = parseRef(ref)
  const command = quant === undefined ? shared.command : `${shared.command} --as ${ns}/${name}`
  if (session.quiet) return session.print(command)
  const rows = [
    ['infohash', shared.infohash],
    ['pin', shared.manifestDigest],
    ['magnet', shared.magnet],
    ...shared.webseeds.map((url) => ['webseed', url]),
    ...shared.peers.map((peer) => ['peer', peer]),
    ...shared.trackers.map((url) => ['tracker', url])
  ]
  for (const line of formatTable(rows)) session.print(line)
  session.print()
  session.print('On the other side:')
  session.print(`  ${command}`)
}

/** `svc catalog search TERMS` */
export async function catalogSearch(session: Session, terms: readonly string[]): Promise<void> {
  const { entries } = await session.client.searchCatalog(terms.join(' '))
  if (session.json) return session.document({ entries })
  if (entries.length === 0) return session.note('nothing found')
  const rows = entries.map((entry) => [entry.repo, entry.quant ?? '', entry.sizeLabel, `${entry.seeds}`, entry.name])
  for (const line of formatTable([['MODEL', 'QUANT', 'SIZE', 'SEEDS', 'NAME'], ...rows])) session.print(line)
  session.note('import one with: svc import catalog MODEL [--quant QUANT]')
}
