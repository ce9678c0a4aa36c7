import type { Status, TorrentStatus } from '@svc/client/protocol'
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Finding } from '../bridge.ts'
import { nowMs } from '../clock.ts'
import { useStore } from '../context.ts'
import { formatBytes, formatRate, formatSince } from '../format.ts'
import { Line } from '../parts/line.tsx'
import { type ColumnOf, Table } from '../parts/table.tsx'
import { TEXTS } from '../texts.ts'

const T = TEXTS.machine

export function MachineView() {
  const status = useStore().status.value
  if (status === undefined) return <p class="empty">{TEXTS.loading}</p>
  const torrents = [...status.swarm.torrents, ...(status.catalog?.torrents ?? [])]
  return (
    <div class="cards">
      <Swarm status={status} torrents={torrents} />
      <Disk status={status} />
      <Health />
      <section class="card whole" aria-label={T.torrents}>
        <h2>{T.torrents}</h2>
        {torrents.length === 0 ? (
          <p>{T.noTorrents}</p>
        ) : (
          <Table label={T.torrents} rows={torrents} columns={TORRENT_COLUMNS} keyOf={({ infohash }) => infohash} />
        )}
        <HeldBack status={status} />
      </section>
    </div>
  )
}

type Facts = readonly (readonly [name: string, value: ComponentChildren])[]

const FactList = ({ facts }: { readonly facts: Facts }) => (
  <dl class="facts">
    {facts.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
)

/** What was given for each byte of the model. */
const ratio = (uploadedBytes: number, sizeBytes: number): string =>
  sizeBytes === 0 ? '' : (uploadedBytes / sizeBytes).toFixed(2)

const sumOf = (torrents: readonly TorrentStatus[], of: (torrent: TorrentStatus) => number): number =>
  torrents.reduce((sum, torrent) => sum + of(torrent), 0)

interface SwarmProps {
  readonly status: Status
  readonly torrents: readonly TorrentStatus[]
}

function Swarm({ status, torrents }: SwarmProps) {
  const { swarm: course } = useStore()
  const { swarm } = status
  if (!swarm.enabled)
    return (
      <section class="card" aria-label={T.swarm}>
        <h2>{T.swarm}</h2>
        <p>{T.off}</p>
      </section>
    )
  const uploaded = sumOf(torrents, ({ uploadedBytes }) => uploadedBytes)
  const ports = [
    swarm.peerAddress && T.peersAt(swarm.peerAddress),
    swarm.webseedAddress && T.webseedAt(swarm.webseedAddress),
    swarm.dhtPort && T.dhtAt(swarm.dhtPort)
  ].filter(Boolean)
  return (
    <section class="card" aria-label={T.swarm}>
      <h2>{T.swarm}</h2>
      <Line label={T.overTime} series={[course.value.down, course.value.up]} />
      <FactList
        facts={[
          [T.peers, swarm.peers + (status.catalog?.peers ?? 0)],
          [T.down, formatRate(swarm.downBytesPerSecond)],
          [T.up, formatRate(swarm.upBytesPerSecond + (status.catalog?.upBytesPerSecond ?? 0))],
          [T.uploaded, formatBytes(uploaded)],
          [
            T.ratio,
            ratio(
              uploaded,
              sumOf(torrents, ({ sizeBytes = 0 }) => sizeBytes)
            )
          ],
          [T.announced, swarm.seeding],
          [T.heldBack, swarm.heldBack.length],
          [T.ports, ports.length === 0 ? T.noPorts : ports.join(', ')]
        ]}
      />
      <Limits status={status} />
    </section>
  )
}

function Limits({ status }: { readonly status: Status }) {
  const { attempt, bridge } = useStore()
  const [seed, seedLocal] = [status.swarm.seed, status.seedLocal ?? true]
  return (
    <>
      <h3>{T.limits}</h3>
      <label>
        <input type="checkbox" checked={seed} onChange={() => void attempt(() => bridge.seed(!seed))} /> {T.seed}
      </label>
      <label>
        <input type="checkbox" checked={seedLocal} onChange={() => void attempt(() => bridge.seedLocal(!seedLocal))} />{' '}
        {T.seedLocal}
      </label>
      <p class="hint">{T.upload}</p>
    </>
  )
}

function Disk({ status }: { readonly status: Status }) {
  const { bytes, blobs, freeBytes } = status.store
  return (
    <section class="card" aria-label={T.disk}>
      <h2>{T.disk}</h2>
      {freeBytes !== undefined && (
        <meter
          min={0}
          max={bytes + freeBytes}
          value={bytes}
          aria-label={T.diskBar(formatBytes(bytes), formatBytes(freeBytes))}
        />
      )}
      <FactList
        facts={[
          [T.store, formatBytes(bytes)],
          [T.free, freeBytes === undefined ? '' : formatBytes(freeBytes)],
          [T.blobs, blobs],
          [T.root, status.root],
          [T.version, `svcd ${status.version}`],
          [T.since, formatSince(status.startedAt, nowMs())]
        ]}
      />
    </section>
  )
}

/** What `svc doctor` says, the worst first. */
function Health() {
  const { attempt, bridge } = useStore()
  const [findings, setFindings] = useState<readonly Finding[]>()
  const look = async (): Promise<void> => setFindings((await attempt(bridge.doctor))?.findings)
  useEffect(() => void look(), [])
  const order = ['bad', 'warn', 'note', 'ok']
  const sorted = [...(findings ?? [])].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))
  const isSound = sorted.every(({ level }) => level === 'ok' || level === 'note')
  return (
    <section class="card" aria-label={T.health}>
      <h2>{T.health}</h2>
      <p role="status">{findings === undefined ? TEXTS.loading : isSound ? T.ok : ''}</p>
      <ul class="findings">
        {sorted.map(({ check, level, text, advice }) => (
          <li key={`${check} ${text}`}>
            <span class={`tag ${level}`}>{T.levels[level]}</span> {text}
            {advice !== undefined && <p class="hint">{advice}</p>}
          </li>
        ))}
      </ul>
      <button type="button" onClick={() => void look()}>
        {T.check}
      </button>
    </section>
  )
}

const TORRENT_COLUMNS: readonly ColumnOf<TorrentStatus>[] = [
  { id: 'name', title: T.columns.name, cell: ({ ref, name }) => ref ?? name },
  { id: 'state', title: T.columns.state, isWide: true, cell: ({ state }) => T.states[state] },
  { id: 'peers', title: T.columns.peers, isNumber: true, cell: ({ peers }) => peers },
  {
    id: 'down',
    title: T.columns.down,
    isNumber: true,
    isWide: true,
    cell: (row) => formatRate(row.downBytesPerSecond)
  },
  { id: 'up', title: T.columns.up, isNumber: true, cell: (row) => formatRate(row.upBytesPerSecond) },
  {
    id: 'given',
    title: T.columns.uploaded,
    isNumber: true,
    isWide: true,
    cell: (row) => formatBytes(row.uploadedBytes)
  },
  {
    id: 'ratio',
    title: T.columns.ratio,
    isNumber: true,
    isWide: true,
    cell: ({ uploadedBytes, sizeBytes = 0 }) => ratio(uploadedBytes, sizeBytes)
  }
]

function HeldBack({ status }: { readonly status: Status }) {
  const { heldBack } = status.swarm
  if (heldBack.length === 0) return null
  return (
    <details>
      <summary>
        {T.heldBack}: {heldBack.length}
      </summary>
      <ul class="findings">
        {heldBack.slice(0, 200).map(({ manifestDigest, ref, reason }) => (
          <li key={manifestDigest}>
            <strong>{ref ?? manifestDigest}</strong> <span class="hint">{reason}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
