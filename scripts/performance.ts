/** `node scripts/performance.ts`: writes the table of docs/performance.md from the newest file of bench/results. A test says when it is old. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Results } from '../bench/harness/report.ts'

const BEGIN = '<!-- begin: scripts/performance.ts -->'
const END = '<!-- end -->'

/** The table of those results that have a target, with the machine that they were taken on. */
export function resultTable({ date, machine, conditions, versions, reports }: Results): string {
  const rows = reports.flatMap(({ row, lines }) =>
    lines
      .filter(({ met }) => met !== undefined)
      .map(({ what, ours, peer, ratio, target, met }, i) => {
        const verdict = met === true ? 'met' : '**missed**'
        const name = i === 0 ? `\`${row}\`` : ''
        return `| ${name} | ${what} | ${ours} | ${peer} | ${ratio?.toFixed(2) ?? ''} | ${target}: ${verdict} |`
      })
  )
  return [
    `${date}: ${machine}; ${versions}. ${conditions[0]?.toUpperCase()}${conditions.slice(1)}.`,
    '',
    '| Row | What | svc | Peer | Ratio | Target |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows
  ].join('\n')
}

/** The page with the table of the newest results (by the name of its file) put in anew. */
export function withResults(page: string, root: string): string {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined) throw new Error(`docs/performance.md lacks ${BEGIN} … ${END}`)
  const folder = join(root, 'bench/results')
  const newest = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .at(-1)
  if (newest === undefined) throw new Error('bench/results is empty')
  const results = JSON.parse(readFileSync(join(folder, newest), 'utf8')) as Results
  return `${before}${BEGIN}\n\n${resultTable(results)}\n\n${END}${after}`
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..')
  const path = join(root, 'docs/performance.md')
  writeFileSync(path, withResults(readFileSync(path, 'utf8'), root))
}
