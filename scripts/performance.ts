/** `node scripts/performance.ts`: writes the table of docs/performance.md from bench/results. A test says when it is old. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mergeResults, type Results } from '../bench/harness/report.ts'

const BEGIN = '<!-- begin: scripts/performance.ts -->'
const END = '<!-- end -->'

/** One line for each run that the table has rows of, the newest first, then the table of all results that have a target. */
export function resultTable({ runs, reports }: Results): string {
  const shown = reports.flatMap((report) => {
    const lines = report.lines.filter(({ met }) => met !== undefined)
    return lines.length === 0 ? [] : [{ ...report, lines }]
  })
  const heads = runs
    .map((run) => ({ ...run, rows: shown.filter(({ date }) => date === run.date).map(({ row }) => `\`${row}\``) }))
    .filter(({ rows }) => rows.length > 0)
    .sort((a, b) => (a.date < b.date ? 1 : -1))
  const rows = shown.flatMap(({ row, lines }) =>
    lines.map(({ what, ours, peer, ratio, target, met }, i) => {
      const verdict = met === true ? 'met' : '**missed**'
      const name = i === 0 ? `\`${row}\`` : ''
      return `| ${name} | ${what} | ${ours.replace(/ \(.*\)$/, '')} | ${peer} | ${ratio?.toFixed(2) ?? ''} | ${target}: ${verdict} |`
    })
  )
  const most = Math.max(...heads.map(({ rows: names }) => names.length))
  const rowsOf = (names: readonly string[]): string => (names.length === most ? 'all other rows' : names.join(', '))
  return [
    ...heads.map(
      ({ date, machine, versions, conditions, rows: names }) =>
        `- ${date}${heads.length > 1 ? `, ${rowsOf(names)}` : ''}: ${machine}; ${versions}; ${conditions}.`
    ),
    '',
    '| Row | What | svc | Peer | Ratio | Target |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows
  ].join('\n')
}

/** The page with the newest figures of each row: files count in the order of their names. */
export function withResults(page: string, root: string): string {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined) throw new Error(`docs/performance.md lacks ${BEGIN} … ${END}`)
  const folder = join(root, 'bench/results')
  const names = readdirSync(folder).filter((name) => name.endsWith('.json'))
  const files = names.sort().map((name): Results => JSON.parse(readFileSync(join(folder, name), 'utf8')))
  const results = files.reduce(mergeResults)
  return `${before}${BEGIN}\n\n${resultTable(results)}\n\n${END}${after}`
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..')
  const path = join(root, 'docs/performance.md')
  writeFileSync(path, withResults(readFileSync(path, 'utf8'), root))
}
