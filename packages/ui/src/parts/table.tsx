import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

export interface ColumnOf<T> {
  readonly id: string
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  /** `wide`: left out on narrow screens; what it says is elsewhere too. */
  readonly look?: 'wide' | 'number' | 'number wide'
}

/** A column of checkboxes. */
interface Picks<T> {
  readonly has: (row: T) => boolean
  readonly labelOf: (row: T) => string
  readonly allLabel: string
  readonly pick: (rows: readonly T[], isPicked: boolean) => void
}

interface TableProps<T> {
  readonly label: string
  readonly rows: readonly T[]
  readonly columns: readonly ColumnOf<T>[]
  readonly keyOf: (row: T) => string
  /** With it, the first cell of a row is a button. */
  readonly onOpen?: (row: T) => void
  readonly sort?: { readonly id: string; readonly isDescending: boolean; readonly by: (id: string) => void }
  /** With it, rows can be picked; with Shift, all from the last one on. */
  readonly picks?: Picks<T>
}

/** In pixels, until a row is measured. */
const ROW_HEIGHT = 40
/** Rows beyond both edges, so that a fast scroll shows no gap. */
const MARGIN = 8

/** Renders only the visible rows. One is in the tab order; arrows, Page Up and Down, Home and End move it. */
export function Table<T>({ label, rows, columns, keyOf, onOpen, sort, picks }: TableProps<T>) {
  const box = useRef<HTMLDivElement>(null)
  const { view, scroll } = useScrolledView(box)
  const [active, setActive] = useState(0)
  const [isMoved, setMoved] = useState(false)
  const pick = usePicking(rows, picks)
  const first = Math.max(0, Math.floor(view.top / view.row) - MARGIN)
  const end = Math.min(rows.length, Math.ceil((view.top + view.height) / view.row) + MARGIN)
  const current = Math.min(Math.max(active, first), Math.max(first, end - 1))
  useLayoutEffect(() => {
    if (!isMoved) return
    setMoved(false)
    box.current?.querySelector<HTMLElement>(`[data-row="${current}"] button`)?.focus({ preventScroll: true })
  })
  const move = (event: KeyboardEvent): void => {
    const to = targetOf(event.key, current, rows.length, Math.floor(view.height / view.row) - 2)
    if (to === undefined || !(event.target instanceof Element) || event.target.closest('tbody') === null) return
    event.preventDefault()
    scrollTo(box.current!, to, view.row)
    scroll()
    setActive(to)
    setMoved(true)
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the buttons in it
    <div class="table" ref={box} onScroll={scroll} onKeyDown={move} data-rows={rows.length}>
      <table aria-label={label} aria-rowcount={rows.length + 1}>
        <Head columns={columns} sort={sort} rows={rows} picks={picks} />
        <Gap height={first * view.row} />
        <tbody>
          {rows.slice(first, end).map((row, i) => (
            <tr key={keyOf(row)} aria-rowindex={first + i + 2} data-row={first + i}>
              {picks !== undefined && (
                <PickCell
                  label={picks.labelOf(row)}
                  isPicked={picks.has(row)}
                  isCurrent={first + i === current}
                  onPick={(isRange) => pick(first + i, isRange)}
                />
              )}
              <Cells
                row={row}
                columns={columns}
                isCurrent={first + i === current}
                onFocus={() => setActive(first + i)}
                onOpen={onOpen}
              />
            </tr>
          ))}
        </tbody>
        <Gap height={(rows.length - end) * view.row} />
      </table>
    </div>
  )
}

/** What of the box is seen, in pixels, and the height of a row; `scroll` looks again. */
function useScrolledView(box: { readonly current: HTMLElement | null }) {
  const [view, setView] = useState({ top: 0, height: 600, row: ROW_HEIGHT })
  const look = (): void => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {}
    const row = box.current?.querySelector('[data-row]')?.getBoundingClientRect().height
    setView({ top: scrollTop, height: clientHeight || 600, row: row || ROW_HEIGHT })
  }
  // rows do not change while it scrolls: measuring them would lay the page out for each frame.
  const scroll = (): void => {
    const { scrollTop: top = 0 } = box.current ?? {}
    setView((seen) => (Math.floor(top / seen.row) === Math.floor(seen.top / seen.row) ? seen : { ...seen, top }))
  }
  useLayoutEffect(() => {
    look()
    addEventListener('resize', look)
    return () => removeEventListener('resize', look)
  }, [])
  return { view, scroll }
}

interface CellsProps<T> {
  readonly row: T
  readonly columns: readonly ColumnOf<T>[]
  readonly isCurrent: boolean
  readonly onFocus: () => void
  readonly onOpen: ((row: T) => void) | undefined
}

function Cells<T>({ row, columns, isCurrent, onFocus, onOpen }: CellsProps<T>) {
  return (
    <>
      {columns.map((column, c) => (
        <td key={column.id} class={classOf(column)}>
          {c === 0 && onOpen !== undefined ? (
            <Opener isCurrent={isCurrent} onFocus={onFocus} onOpen={() => onOpen(row)}>
              {column.cell(row)}
            </Opener>
          ) : (
            column.cell(row)
          )}
        </td>
      ))}
    </>
  )
}

interface OpenerProps {
  readonly isCurrent: boolean
  readonly onFocus: () => void
  readonly onOpen: () => void
  readonly children: ComponentChildren
}

const Opener = ({ isCurrent, onFocus, onOpen, children }: OpenerProps) => (
  <button type="button" class="link" tabIndex={isCurrent ? 0 : -1} onFocus={onFocus} onClick={onOpen}>
    {children}
  </button>
)

/** Picks the row at a place, or all from the last one picked to there. */
function usePicking<T>(rows: readonly T[], picks: Picks<T> | undefined) {
  const last = useRef(0)
  return (at: number, isRange: boolean): void => {
    const [from, to] = isRange ? [Math.min(at, last.current), Math.max(at, last.current)] : [at, at]
    picks?.pick(rows.slice(from, to + 1), !picks.has(rows[at]!))
    last.current = at
  }
}

interface PickCellProps {
  readonly label: string
  readonly isPicked: boolean
  readonly isCurrent: boolean
  readonly onPick: (isRange: boolean) => void
}

const PickCell = ({ label, isPicked, isCurrent, onPick }: PickCellProps) => (
  <td class="c-pick">
    <label>
      <input
        type="checkbox"
        aria-label={label}
        tabIndex={isCurrent ? 0 : -1}
        checked={isPicked}
        onClick={(event) => onPick(event.shiftKey)}
      />
    </label>
  </td>
)

const classOf = <T,>({ id, look }: ColumnOf<T>): string => `c-${id} ${look ?? ''}`.trimEnd()

type HeadProps<T> = Pick<TableProps<T>, 'columns' | 'rows'> & {
  readonly sort: TableProps<T>['sort']
  readonly picks: Picks<T> | undefined
}

function Head<T>({ columns, sort, rows, picks }: HeadProps<T>) {
  const areAllPicked = picks !== undefined && rows.length > 0 && rows.every(picks.has)
  return (
    <thead>
      <tr aria-rowindex={1}>
        {picks !== undefined && (
          <th scope="col" class="c-pick">
            <label>
              <input
                type="checkbox"
                aria-label={picks.allLabel}
                checked={areAllPicked}
                onClick={() => picks.pick(rows, !areAllPicked)}
              />
            </label>
          </th>
        )}
        {columns.map((column) => {
          const { id, title } = column
          const order = sort?.id !== id ? undefined : sort.isDescending ? 'descending' : 'ascending'
          return (
            <th key={id} scope="col" class={classOf(column)} aria-sort={order}>
              {sort === undefined ? (
                title
              ) : (
                <button type="button" class="link" onClick={() => sort.by(id)}>
                  {title}
                  <span aria-hidden="true">{order === undefined ? '' : order === 'ascending' ? ' ↑' : ' ↓'}</span>
                </button>
              )}
            </th>
          )
        })}
      </tr>
    </thead>
  )
}

/** The space of rows that are not rendered. */
function Gap({ height }: { readonly height: number }) {
  if (height <= 0) return null
  return (
    <tbody aria-hidden="true" class="gap">
      <tr>
        <td style={{ height: `${height}px` }} />
      </tr>
    </tbody>
  )
}

function targetOf(key: string, at: number, count: number, page: number): number | undefined {
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1 }[
    key
  ]
  return to === undefined || count === 0 ? undefined : Math.min(Math.max(to, 0), count - 1)
}

/** Scrolls just far enough to show the row below the head, which stays at the top. */
function scrollTo(box: HTMLElement, row: number, height: number): void {
  const [top, bottom] = [row * height, (row + 2) * height]
  if (top < box.scrollTop) box.scrollTop = top
  else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight
}
