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
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { DiskMap } from '../parts/disk-map.tsx'
import { Empty } from '../parts/empty.tsx'
import { type ColumnOf, Table } from '../parts/table.tsx'
import { formatPlace, go, leave, place } from '../place.ts'
import { started } from '../store.ts'
import { TEXTS } from '../texts.ts'
import { GarbageDialog } from './garbage.tsx'
import { ModelDialog } from './model.tsx'
import { RemoveDialog } from './remove.tsx'

const T = TEXTS.models
/** With more models, the map is drawn only on request: it reads each manifest. */
const MAX_MAPPED = 500
/** In windows this narrow, in pixels, the map would push the table out of sight. */
const NARROW = 700
/** Kept while other views show. */
const selection = signal<Selection>({ words: '', filter: 'all', column: 'name', isDescending: false })
const wanted = signal<boolean | undefined>(undefined)
/** References of the models that are chosen for what is done to several. */
const picked = signal<ReadonlySet<string>>(new Set())

export function ModelsView() {
  const { rows, inventory, disk, measure } = useStore()
  const open = (model: string): void => go({ view: 'models', model })
  const [isCollecting, setCollecting] = useState(false)
  const count = rows.value.length
  const isMapped = wanted.value ?? (count > 0 && count <= MAX_MAPPED && innerWidth > NARROW)
  useEffect(() => {
    if (isMapped) void measure()
  }, [isMapped])
  const shown = selectRows(rows.value, selection.value)
  const chosen = rows.value.filter(({ ref }) => picked.value.has(ref))
  return (
    <>
      {(count > 0 || isMapped) && (
        <Toolbar
          rows={shown}
          count={count}
          isMapped={isMapped}
          onMap={() => {
            wanted.value = !isMapped
          }}
          onCollect={() => setCollecting(true)}
        />
      )}
      {chosen.length > 0 && <Picked rows={chosen} />}
      {isMapped && disk.value !== undefined && (
        <DiskMap disk={disk.value} onOpen={open} onCollect={() => setCollecting(true)} />
      )}
      {shown.length > 0 ? (
        <ModelTable rows={shown} onOpen={({ ref }) => open(ref)} />
      ) : inventory.value === undefined ? (
        <Empty title={TEXTS.loading} />
      ) : count > 0 ? (
        <Empty title={T.noMatch} />
      ) : (
        <Empty title={T.none} text={T.noneText}>
          <a class="button main" href="#get">
            {T.first}
          </a>
        </Empty>
      )}
      <AddressedModel />
      {isCollecting && <GarbageDialog onClose={() => setCollecting(false)} />}
    </>
  )
}

/** The model that the address names. */
function AddressedModel() {
  const { rows, inventory } = useStore()
  const { model } = place.value
  const close = (): void => leave({ view: 'models' })
  if (model === undefined || inventory.value === undefined) return null
  const row = rows.value.find(({ ref, repo }) => ref === model || repo === model)
  if (row !== undefined) return <ModelDialog key={row.ref} row={row} onClose={close} />
  return (
    <Dialog title={T.notHere(model)} onClose={close}>
      <footer>
        <a class="button main" href={formatPlace({ view: 'get', text: model.replace(/:.*/, '') })}>
          {T.lookForIt}
        </a>
      </footer>
    </Dialog>
  )
}

interface ToolbarProps {
  readonly rows: readonly ModelRow[]
  readonly count: number
  readonly isMapped: boolean
  readonly onMap: () => void
  readonly onCollect: () => void
}

function Toolbar({ rows, count, isMapped, onMap, onCollect }: ToolbarProps) {
  const { attempt, bridge } = useStore()
  const choose = (change: Partial<Selection>): void => {
    selection.value = { ...selection.value, ...change }
  }
  const bytes = rows.reduce((sum, { member }) => sum + member.sizeBytes, 0)
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
        {T.count(rows.length, count, new Set(rows.map(({ repo }) => repo)).size, formatBytes(bytes))}
      </span>
      <span class="space" />
      <button type="button" aria-pressed={isMapped} onClick={onMap}>
        {T.map}
      </button>
      <Button text={T.verifyAll} does={() => attempt(() => bridge.verify('all'), started)} />
      <Button text={T.garbage} does={onCollect} />
    </div>
  )
}

/** What is done to all models that are picked. */
function Picked({ rows }: { readonly rows: readonly ModelRow[] }) {
  const { attempt, bridge } = useStore()
  const [isRemoving, setRemoving] = useState(false)
  const clear = (): void => {
    picked.value = new Set()
  }
  const refs = rows.map(({ ref }) => ref)
  const each = (work: (ref: string) => Promise<unknown>, said: string) => () =>
    attempt(
      async () => {
        for (const ref of refs) await work(ref)
        return said
      },
      () => `${T.picked(refs.length)}: ${said}`
    )
  const isPinned = rows.every(({ member }) => member.pinned === true)
  const isPrivate = rows.every(({ member }) => member.private)
  const M = TEXTS.model
  return (
    <section class="toolbar picked" aria-label={T.picked(refs.length)}>
      <strong role="status">{T.picked(refs.length)}</strong>
      <span class="space" />
      <Button
        text={isPinned ? M.unpin : M.pin}
        does={each((ref) => bridge.setPinned(ref, !isPinned), isPinned ? M.nowUnpinned : M.nowPinned)}
      />
      <Button
        text={isPrivate ? M.makePublic : M.keepPrivate}
        does={each((ref) => bridge.setPrivate(ref, !isPrivate), isPrivate ? M.nowPublic : M.nowPrivate)}
      />
      <Button text={M.evict} does={each((ref) => bridge.evict(ref), M.evicting)} />
      <Button text={M.remove} look="danger" does={() => setRemoving(true)} />
      <Button text={T.clear} does={clear} />
      {isRemoving && (
        <RemoveDialog
          references={refs}
          onClose={() => setRemoving(false)}
          onRemoved={() => {
            setRemoving(false)
            clear()
          }}
        />
      )}
    </section>
  )
}

function pickRows(rows: readonly ModelRow[], isPicked: boolean): void {
  const refs = new Set(rows.map(({ ref }) => ref))
  const others = [...picked.value].filter((ref) => !refs.has(ref))
  picked.value = new Set(isPicked ? [...others, ...refs] : others)
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
  const largest = rows.reduce((most, { member }) => Math.max(most, member.sizeBytes), 1)
  return (
    <Table
      label={TEXTS.views.models}
      rows={rows}
      columns={columnsOf(nowMs(), largest)}
      keyOf={({ ref }) => ref}
      onOpen={onOpen}
      sort={{ id: column, isDescending, by }}
      picks={{
        has: ({ ref }) => picked.value.has(ref),
        labelOf: ({ ref }) => T.pick(ref),
        allLabel: T.pickAll,
        pick: pickRows
      }}
    />
  )
}

const columnsOf = (now: number, largest: number): readonly ColumnOf<ModelRow>[] => [
  { id: 'name', title: T.columns.name, cell: (row) => <Name row={row} /> },
  { id: 'quant', title: T.columns.quant, look: 'wide', cell: ({ quant }) => <code>{quant}</code> },
  {
    id: 'size',
    title: T.columns.size,
    look: 'number wide',
    cell: ({ member: { sizeBytes } }) => (
      <span class="bar" style={{ '--part': `${(100 * sizeBytes) / largest}%` }}>
        {formatBytes(sizeBytes)}
      </span>
    )
  },
  { id: 'state', title: T.columns.state, cell: ({ member }) => <ModelState member={member} /> },
  {
    id: 'sharing',
    title: T.columns.sharing,
    look: 'wide',
    cell: ({ sharing, reason }) => (
      <span class={`mark ${sharing}`} title={reason}>
        {T.sharing[sharing]}
        {reason !== '' && <span class="unseen">: {reason}</span>}
      </span>
    )
  },
  {
    id: 'companions',
    title: T.columns.companions,
    look: 'wide',
    cell: ({ member }) => (member.companions === undefined ? '' : T.hasCompanions)
  },
  {
    id: 'used',
    title: T.columns.used,
    look: 'wide',
    cell: ({ member }) => formatSince(member.lastUsedAt ?? member.importedAt, now)
  }
]

/** On narrow screens it also says what the hidden columns would. */
function Name({ row: { repo, quant, member } }: { readonly row: ModelRow }) {
  const at = repo.indexOf('/') + 1
  return (
    <span class="name" title={`${repo}:${quant}`}>
      {/* parts in a row of boxes would be read as several words */}
      <span class="unseen">
        {repo}:{quant}
      </span>
      <span class="owner" aria-hidden="true">
        {repo.slice(0, at)}
      </span>
      <span class="repo" aria-hidden="true">
        {repo.slice(at)}
      </span>
      <code class="quant" aria-hidden="true">
        {quant}
      </code>{' '}
      {member.pinned === true && <span class="tag">{T.pinned}</span>}
      {member.newer !== undefined && <span class="tag warn">{T.newer}</span>}
      {member.malformed !== undefined && <span class="tag bad">{T.malformed}</span>}
    </span>
  )
}

function ModelState({ member }: Pick<ModelRow, 'member'>) {
  const level = member.damaged === true ? 'bad' : member.complete ? 'good' : member.away === true ? 'none' : 'warn'
  return (
    <>
      <span class={`mark ${level}`}>{stateOf(member)}</span>
      <span class="narrow hint">{formatBytes(member.sizeBytes)}</span>
    </>
  )
}
