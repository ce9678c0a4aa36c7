import type { HubEntry, SearchResult } from '@svc/client/protocol'
import { nowMs } from '../clock.ts'
import { useStore } from '../context.ts'
import { formatCount, formatSince } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { type ColumnOf, Table } from '../parts/table.tsx'
import { TEXTS } from '../texts.ts'

const T = TEXTS.get

interface ResultsProps {
  readonly result: SearchResult
  readonly onChoose: (repo: string) => void
  readonly onMore: () => void
}

export function Results({ result, onChoose, onMore }: ResultsProps) {
  const { rows } = useStore()
  const here = new Set(rows.value.map(({ member }) => member.origin?.repo?.toLowerCase()))
  return (
    <>
      <p role="status">{result.entries.length === 0 ? T.nothing : T.results(result.entries.length)}</p>
      {result.entries.length > 0 && (
        <Table
          label={T.results(result.entries.length)}
          rows={result.entries}
          columns={columnsOf(here)}
          keyOf={({ repo }) => repo}
          onOpen={({ repo }) => onChoose(repo)}
        />
      )}
      {result.next !== undefined && <Button text={T.more} does={onMore} />}
    </>
  )
}

const columnsOf = (here: ReadonlySet<string | undefined>): readonly ColumnOf<HubEntry>[] => [
  {
    id: 'repo',
    title: T.columns.repo,
    cell: ({ repo, gated }) => (
      <>
        {repo} {gated && <span class="tag warn">{T.gated}</span>}
        {here.has(repo.toLowerCase()) && <span class="tag good">{T.here}</span>}
      </>
    )
  },
  {
    id: 'parameters',
    title: T.columns.parameters,
    look: 'number',
    cell: ({ parameters }) => (parameters === undefined ? '' : formatCount(parameters))
  },
  { id: 'formats', title: T.columns.formats, look: 'wide', cell: ({ formats }) => formats.join(', ') },
  { id: 'license', title: T.columns.license, look: 'wide', cell: ({ license = '' }) => license },
  {
    id: 'downloads',
    title: T.columns.downloads,
    look: 'number wide',
    cell: ({ downloads }) => (downloads === undefined ? '' : formatCount(downloads))
  },
  { id: 'updated', title: T.columns.updated, look: 'wide', cell: ({ updatedAt }) => formatSince(updatedAt, nowMs()) }
]
