import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { nowMs } from '../clock.ts'
import { useStore } from '../context.ts'
import { formatBytes, formatSince } from '../format.ts'
import {
  COLUMNS,
  type Column,
  FILTERS,
  type Filter,
  type ModelRow,
  type Selection,
  selectRows,
  stateOf
} from '../model-rows.ts'
import { DiskMap } from '../parts/disk-map.tsx'
import { type ColumnOf, Table } from '../parts/table.tsx'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'
import { GarbageDialog } from './garbage.tsx'
import { ModelDialog } from './model.tsx'

const T = TEXTS.models
/** Kept while other views show. */
const selection = signal<Selection>({ words: '', filter: 'all', column: 'name', isDescending: false })

export function ModelsView() {
  const { rows, inventory, disk, measure } = useStore()
  const [opened, setOpened] = useState<string>()
  const [isCollecting, setCollecting] = useState(false)
  const [isMapped, setMapped] = useState(false)
  useEffect(() => {
    if (isMapped) void measure()
  }, [isMapped])
  const shown = selectRows(rows.value, selection.value)
  const row = rows.value.find(({ ref }) => ref === opened)
  return (
    <>
      <Toolbar
        count={T.count(shown.length, rows.value.length)}
        isMapped={isMapped}
        onMap={() => setMapped(!isMapped)}
        onCollect={() => setCollecting(true)}
      />
      {isMapped && disk.value !== undefined && <DiskMap disk={disk.value} onOpen={setOpened} />}
      {shown.length === 0 ? (
        <p class="empty">
          {inventory.value === undefined ? (
            TEXTS.loading
          ) : rows.value.length > 0 ? (
            T.noMatch
          ) : (
            <a href="#get">{T.none}</a>
          )}
        </p>
      ) : (
        <ModelTable rows={shown} onOpen={({ ref }) => setOpened(ref)} />
      )}
      {row !== undefined && <ModelDialog key={row.ref} row={row} onClose={() => setOpened(undefined)} />}
      {isCollecting && <GarbageDialog onClose={() => setCollecting(false)} />}
    </>
  )
}

interface ToolbarProps {
  readonly count: string
  readonly isMapped: boolean
  readonly onMap: () => void
  readonly onCollect: () => void
}

function Toolbar({ count, isMapped, onMap, onCollect }: ToolbarProps) {
  const { attempt, bridge } = useStore()
  const choose = (change: Partial<Selection>): void => {
    selection.value = { ...selection.value, ...change }
  }
  return (
    <div class="toolbar">
      <input
        type="search"
        aria-label={T.find}
        placeholder={T.find}
        value={selection.value.words}
        onInput={(event) => choose({ words: event.currentTarget.value })}
      />
      <select
        aria-label={T.show}
        value={selection.value.filter}
        onChange={(event) => choose({ filter: event.currentTarget.value as Filter })}
      >
        {FILTERS.map((each) => (
          <option key={each} value={each}>
            {T.filters[each]}
          </option>
        ))}
      </select>
      <span role="status" class="hint">
        {count}
      </span>
      <span class="space" />
      <button type="button" aria-pressed={isMapped} onClick={onMap}>
        {T.map}
      </button>
      <button type="button" onClick={() => void attempt(() => bridge.verify('all'), started)}>
        {T.verifyAll}
      </button>
      <button type="button" onClick={onCollect}>
        {T.garbage}
      </button>
    </div>
  )
}

const isColumn = (id: string): id is Column => (COLUMNS as readonly string[]).includes(id)
/** What people look for first: the largest, the latest. */
const DESCENDING_FIRST: readonly string[] = ['size', 'used']

function ModelTable({
  rows,
  onOpen
}: {
  readonly rows: readonly ModelRow[]
  readonly onOpen: (row: ModelRow) => void
}) {
  const { column, isDescending } = selection.value
  const by = (id: string): void => {
    if (!isColumn(id)) return
    const turned = id === column ? !isDescending : DESCENDING_FIRST.includes(id)
    selection.value = { ...selection.value, column: id, isDescending: turned }
  }
  return (
    <Table
      label={TEXTS.views.models}
      rows={rows}
      columns={columnsOf(nowMs())}
      keyOf={({ ref }) => ref}
      onOpen={onOpen}
      sort={{ id: column, isDescending, by }}
    />
  )
}

const columnsOf = (now: number): readonly ColumnOf<ModelRow>[] => [
  { id: 'name', title: T.columns.name, cell: ({ repo, quant, member }) => <Name {...{ repo, quant, member }} /> },
  { id: 'quant', title: T.columns.quant, isWide: true, cell: ({ quant }) => quant },
  { id: 'size', title: T.columns.size, isNumber: true, cell: ({ member }) => formatBytes(member.sizeBytes) },
  { id: 'state', title: T.columns.state, cell: ({ member }) => <State member={member} /> },
  {
    id: 'sharing',
    title: T.columns.sharing,
    isWide: true,
    cell: ({ sharing, reason }) => (
      <span class={`tag ${sharing}`} title={reason}>
        {T.sharing[sharing]}
        {reason !== '' && <span class="unseen">: {reason}</span>}
      </span>
    )
  },
  {
    id: 'companions',
    title: T.columns.companions,
    isWide: true,
    cell: ({ member }) => (member.companions === undefined ? '' : T.hasCompanions)
  },
  {
    id: 'used',
    title: T.columns.used,
    isWide: true,
    cell: ({ member }) => formatSince(member.lastUsedAt ?? member.importedAt, now)
  }
]

function Name({ repo, quant, member }: Pick<ModelRow, 'repo' | 'quant' | 'member'>) {
  return (
    <span title={`${repo}:${quant}`}>
      {repo}
      <span class="narrow">:{quant}</span>
      {member.pinned === true && <span class="tag newer">{T.pinned}</span>}
      {member.newer !== undefined && <span class="tag newer">{T.newer}</span>}
    </span>
  )
}

function State({ member }: Pick<ModelRow, 'member'>) {
  return (
    <span class={`tag ${member.damaged === true ? 'bad' : member.complete ? 'good' : 'warn'}`}>{stateOf(member)}</span>
  )
}
