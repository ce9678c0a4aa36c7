import type { PeerList, Status, TorrentStatus } from '@svc/client/protocol'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { DoctorFinding } from '../bridge.ts'
import { nowMs } from '../clock.ts'
import { useStore } from '../context.ts'
import { formatBytes, formatRate, formatSince } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Empty } from '../parts/empty.tsx'
import { FactList } from '../parts/facts.tsx'
import { Line } from '../parts/line.tsx'
import { type ColumnOf, Table } from '../parts/table.tsx'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'

const T = TEXTS.machine

export function MachineView() {
  const { attempt, bridge, ...store } = useStore()
  const [findings, setFindings] = useState<readonly DoctorFinding[]>()
  const look = async (): Promise<void> => setFindings((await attempt(bridge.doctor))?.findings)
  // a model may be damaged since the last look
  const inventory = store.inventory.value
  useEffect(() => void look(), [inventory])
  const status = store.status.value
  if (status === undefined) return <Empty title={TEXTS.loading} />
  const names = new Map(store.rows.value.map(({ member, ref }) => [member.manifest, ref]))
  const torrents = [...status.swarm.torrents, ...(status.catalog?.torrents ?? [])].map((torrent) => ({
    ...torrent,
    name: torrent.ref ?? names.get(torrent.manifestDigest ?? '') ?? torrent.name
  }))
  return (
    <>
      <div class="cards">
        <NetworkSection status={status} torrents={torrents} ports={findings?.filter(isOfPorts)} />
        <DiskSection status={status} />
        <Health findings={findings} onLook={look} />
        <LogSection />
      </div>
      <Card title={T.torrents}>
        {torrents.length === 0 ? (
          <p class="hint">{T.noTorrents}</p>
        ) : (
          <Table label={T.torrents} rows={torrents} columns={TORRENT_COLUMNS} keyOf={({ infohash }) => infohash} />
        )}
        <Peers status={status} names={names} />
        <HeldBackList status={status} />
      </Card>
    </>
  )
}

/** The doctor's findings on ports are shown with the network. */
const isOfPorts = ({ check }: DoctorFinding): boolean => check === 'listeners' || check === 'DHT'

/** Uploaded bytes for each byte of the model. */
const ratio = (uploadedBytes: number, sizeBytes: number): string =>
  sizeBytes === 0 ? '' : (uploadedBytes / sizeBytes).toFixed(2)

const sumOf = (torrents: readonly TorrentStatus[], of: (torrent: TorrentStatus) => number): number =>
  torrents.reduce((sum, torrent) => sum + of(torrent), 0)

interface CardProps {
  readonly title: string
  readonly children: ComponentChildren
}

const Card = ({ title, children }: CardProps) => (
  <section class="card" aria-label={title}>
    <h2>{title}</h2>
    {children}
  </section>
)

interface NetworkProps {
  readonly status: Status
  readonly torrents: readonly TorrentStatus[]
  readonly ports: readonly DoctorFinding[] | undefined
}

function NetworkSection({ status, torrents, ports = [] }: NetworkProps) {
  const { down, up } = useStore().traffic.value
  const { swarm, catalog } = status
  const uploaded = sumOf(torrents, ({ uploadedBytes }) => uploadedBytes)
  const size = sumOf(torrents, ({ sizeBytes = 0 }) => sizeBytes)
  return (
    <Card title={T.network}>
      <Line label={T.overTime} series={[down, up]} />
      <p class="rates">
        <span>
          ↓ {T.down} {formatRate(down.at(-1) ?? 0)}
        </span>{' '}
        <span>
          ↑ {T.up} {formatRate(up.at(-1) ?? 0)}
        </span>
      </p>
      {swarm.enabled ? (
        <>
          <FactList
            facts={[
              [T.peers, swarm.peers + (catalog?.peers ?? 0)],
              [T.announced, many(swarm.seeding)],
              [T.heldBack, many(swarm.heldBack.length)],
              [T.uploaded, formatBytes(uploaded)],
              [T.ratio, ratio(uploaded, size)]
            ]}
          />
          <h3>{T.ports}</h3>
          <FindingList findings={ports} />
        </>
      ) : (
        <p>{T.off}</p>
      )}
      <Limits status={status} />
    </Card>
  )
}

const many = (count: number): string => TEXTS.models.models(count)

function Limits({ status }: { readonly status: Status }) {
  const { bridge } = useStore()
  return (
    <>
      <h3>{T.limits}</h3>
      {status.swarm.enabled && <SharingLimits status={status} />}
      <LimitField
        label={T.download}
        bytesPerSecond={status.downloadLimitBytesPerSecond ?? 0}
        does={bridge.limitDownload}
        told={T.downLimited}
      />
    </>
  )
}

function SharingLimits({ status }: { readonly status: Status }) {
  const { attempt, bridge } = useStore()
  const [seed, seedLocal] = [status.swarm.seed, status.seedLocal ?? true]
  return (
    <>
      <label>
        <input type="checkbox" checked={seed} onChange={() => void attempt(() => bridge.seed(!seed))} /> {T.seed}
      </label>
      <label>
        <input type="checkbox" checked={seedLocal} onChange={() => void attempt(() => bridge.seedLocal(!seedLocal))} />{' '}
        {T.seedLocal}
      </label>
      <LimitField
        label={T.upload}
        bytesPerSecond={status.swarm.uploadLimitBytesPerSecond ?? 0}
        does={bridge.limitUpload}
        told={T.limited}
      />
    </>
  )
}

const MIB = 1024 * 1024

interface LimitFieldProps {
  readonly label: string
  readonly bytesPerSecond: number
  readonly does: (bytesPerSecond: number) => Promise<unknown>
  readonly told: (rate: string | undefined) => string
}

function LimitField({ label, bytesPerSecond, does, told }: LimitFieldProps) {
  const { attempt } = useStore()
  return (
    <label>
      {label}{' '}
      <input
        type="number"
        min="0"
        step="any"
        value={bytesPerSecond / MIB}
        onChange={({ currentTarget: { value } }) => {
          if (value === '') return
          const limit = Math.round(Number(value) * MIB)
          void attempt(
            () => does(limit),
            () => told(limit === 0 ? undefined : formatRate(limit))
          )
        }}
      />
    </label>
  )
}

function DiskSection({ status }: { readonly status: Status }) {
  const { attempt, bridge } = useStore()
  const { bytes, blobs, freeBytes, maxBytes, minFreeBytes = 0, unfinished, quarantined } = status.store
  return (
    <Card title={T.disk}>
      {freeBytes !== undefined && (
        <meter
          min={0}
          max={Math.min(maxBytes ?? Number.POSITIVE_INFINITY, bytes + freeBytes - minFreeBytes)}
          value={bytes}
          aria-label={T.diskBar(formatBytes(bytes), formatBytes(freeBytes))}
        />
      )}
      <FactList
        facts={[
          [T.store, formatBytes(bytes)],
          [T.free, freeBytes === undefined ? '' : formatBytes(freeBytes)],
          [T.budget, maxBytes === undefined ? T.noBudget : formatBytes(maxBytes)],
          [T.keptFree, minFreeBytes === 0 ? '' : formatBytes(minFreeBytes)],
          [T.blobs, blobs],
          [T.unfinished, leftover(unfinished)],
          [T.quarantined, leftover(quarantined)],
          [T.root, status.root],
          [T.version, `svcd ${status.version}`],
          [T.since, formatSince(status.startedAt, nowMs())]
        ]}
      />
      {(unfinished ?? quarantined) !== undefined && (
        <Button text={T.dropLeftovers} does={() => attempt(bridge.dropLeftovers, started)} />
      )}
    </Card>
  )
}

const leftover = (found: Status['store']['unfinished']): string =>
  found === undefined ? '' : T.leftover(formatBytes(found.bytes), found.files)

const ORDER = ['bad', 'warn', 'note', 'ok']
const LEVELS = { bad: 'bad', warn: 'warn', note: 'none', ok: 'good' }

const FindingList = ({ findings }: { readonly findings: readonly DoctorFinding[] }) => (
  <ul class="findings">
    {[...findings]
      .sort((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level))
      .map(({ check, level, text, advice }) => (
        <li key={`${check} ${text}`}>
          <span class={`mark ${LEVELS[level]}`}>
            <span class="unseen">{T.levels[level]}: </span>
            {check}
          </span>
          <div>
            {text}
            {advice !== undefined && <p class="hint">{advice}</p>}
          </div>
        </li>
      ))}
  </ul>
)

interface HealthProps {
  readonly findings: readonly DoctorFinding[] | undefined
  readonly onLook: () => unknown
}

/** What `svc doctor` says, the worst first. */
function Health({ findings, onLook }: HealthProps) {
  const troubles = (findings ?? []).filter(({ level }) => level === 'bad' || level === 'warn').length
  const others = (findings ?? []).filter((finding) => !isOfPorts(finding))
  return (
    <section class="card" aria-label={T.health}>
      <header>
        <h2>{T.health}</h2>
        <Button text={T.check} does={onLook} />
      </header>
      <p role="status">{findings === undefined ? TEXTS.loading : troubles === 0 ? T.ok : T.troubles(troubles)}</p>
      <FindingList findings={others} />
    </section>
  )
}

/** The end of the daemon's log, on request. */
function LogSection() {
  const { attempt, bridge } = useStore()
  const [log, setLog] = useState<Awaited<ReturnType<typeof bridge.log>>>()
  const end = useRef<HTMLPreElement>(null)
  useEffect(() => end.current?.scrollTo({ top: end.current.scrollHeight }), [log])
  const look = async (): Promise<void> => setLog(await attempt(bridge.log))
  return (
    <section class="card" aria-label={T.log}>
      <header>
        <h2>{T.log}</h2>
        <Button text={log === undefined ? T.showLog : T.newLog} does={look} />
      </header>
      <p class="hint">{log === undefined ? T.logHint : (log.place ?? T.noLog)}</p>
      {log !== undefined && log.lines.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard must reach it
        <pre class="log" ref={end} tabIndex={0}>
          {log.lines.join('\n')}
        </pre>
      )}
    </section>
  )
}

const TORRENT_COLUMNS: readonly ColumnOf<TorrentStatus>[] = [
  { id: 'name', title: T.columns.name, cell: ({ name }) => name },
  { id: 'state', title: T.columns.state, look: 'wide', cell: ({ state }) => T.states[state] },
  { id: 'peers', title: T.columns.peers, look: 'number', cell: ({ peers }) => peers },
  { id: 'down', title: T.columns.down, look: 'number wide', cell: (row) => formatRate(row.downBytesPerSecond) },
  { id: 'up', title: T.columns.up, look: 'number', cell: (row) => formatRate(row.upBytesPerSecond) },
  { id: 'given', title: T.columns.uploaded, look: 'number wide', cell: (row) => formatBytes(row.uploadedBytes) },
  {
    id: 'ratio',
    title: T.columns.ratio,
    look: 'number wide',
    cell: ({ uploadedBytes, sizeBytes = 0 }) => ratio(uploadedBytes, sizeBytes)
  }
]

interface PeersProps {
  readonly status: Status
  /** References, by the digest of the manifest. */
  readonly names: ReadonlyMap<string, string>
}

/** Each peer, asked for while somebody looks. */
function Peers({ status, names }: PeersProps) {
  const { bridge } = useStore()
  const [isOpen, setOpen] = useState(false)
  const [list, setList] = useState<PeerList>()
  useEffect(() => {
    if (isOpen) bridge.peers().then(setList, () => undefined)
  }, [isOpen, status])
  if (status.swarm.peers === 0) return null
  const rows = (list?.peers ?? []).map((peer) => ({ ...peer, model: names.get(peer.manifestDigest) ?? peer.infohash }))
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        {T.peers}: {status.swarm.peers}
      </summary>
      <Table
        label={T.peers}
        rows={rows}
        columns={PEER_COLUMNS}
        keyOf={({ infohash, address }) => `${infohash} ${address}`}
      />
      {list !== undefined && list.more > 0 && <p class="hint">{T.morePeers(list.more)}</p>}
    </details>
  )
}

const PEER_COLUMNS: readonly ColumnOf<PeerList['peers'][number] & { readonly model: string }>[] = [
  { id: 'address', title: T.peerColumns.address, cell: ({ address }) => address },
  { id: 'model', title: T.columns.name, look: 'wide', cell: ({ model }) => model },
  { id: 'client', title: T.peerColumns.client, look: 'wide', cell: ({ client = '' }) => client },
  { id: 'source', title: T.peerColumns.source, look: 'wide', cell: ({ source }) => T.peerSources[source] },
  {
    id: 'have',
    title: T.peerColumns.have,
    look: 'number',
    cell: ({ have }) => (have === undefined ? '' : `${Math.floor(100 * have)}%`)
  },
  { id: 'down', title: T.columns.down, look: 'number', cell: (row) => formatRate(row.downBytesPerSecond) },
  { id: 'up', title: T.columns.up, look: 'number', cell: (row) => formatRate(row.upBytesPerSecond) }
]

function HeldBackList({ status }: { readonly status: Status }) {
  const { heldBack } = status.swarm
  if (heldBack.length === 0) return null
  return (
    <details>
      <summary>
        {T.heldBack}: {heldBack.length}
      </summary>
      <ul class="held">
        {heldBack.slice(0, 200).map(({ manifestDigest, ref, reason }) => (
          <li key={manifestDigest}>
            <strong>{ref ?? manifestDigest}</strong> <span class="hint">{reason}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}
