/** `node scripts/limits.ts`: writes the table of docs/budgets.md from the constants in the sources. A test fails if it is out of date. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { LIMITS, type LimitRow } from './limits/rows.ts'

const NUMBER = '([\\d._]+n?(?:\\s*(?:<<|\\*\\*?|[/+-])\\s*[\\d._]+n?|e\\d+)*)'
const BEGIN = '<!-- begin: scripts/limits.ts -->'
const END = '<!-- end -->'

/** The numbers of the sources below a folder, by file and name. */
export class Constants {
  readonly #texts = new Map<string, string[]>()

  constructor(root: string) {
    for (const path of globSync('packages/{*,internal/*}/src/**/*.ts', { cwd: root })) {
      const name = basename(path, '.ts')
      this.#texts.set(name, [...(this.#texts.get(name) ?? []), readFileSync(join(root, path), 'utf8')])
    }
  }

  /** The value of `file#name`, or of a property as `file#name.property`. @throws when the sources do not say one. */
  valueOf(place: string): number {
    const [file = '', path = ''] = place.split('#')
    const [name = '', property] = path.split('.')
    const begin = property === undefined ? name : `${name}\\b[^}]*?\\b${property}`
    const pattern = new RegExp(`\\b${begin}\\b\\s*(?::\\s*\\w+\\s*)?(?:=|:|\\?\\?)\\s*${NUMBER}`)
    const inFiles = (texts: readonly string[]): string[] =>
      texts.map((text) => pattern.exec(text)?.[1]).filter((text) => text !== undefined)
    // a constant that has moved is still found while its name is the only one of its kind
    const [found, ...others] = inFiles(this.#texts.get(file) ?? [])
    const moved = found === undefined ? inFiles([...this.#texts.values()].flat()) : [found]
    if (moved.length !== 1) throw new Error(`${moved.length} sources say what ${path} is, none of them ${file}.ts`)
    if (others.some((other) => evaluate(other) !== evaluate(moved[0]!)))
      throw new Error(`files ${file}.ts disagree about ${path}`)
    return evaluate(moved[0]!)
  }
}

/** A number as sources write it: with underscores, products and shifts. */
function evaluate(text: string): number {
  const [first = '', ...rest] = text.replaceAll(/[_n\s]/g, '').split(/(<<|\*\*?|[/+-])/)
  let value = Number(first)
  for (let i = 0; i < rest.length; i += 2) {
    let next = Number(rest[i + 1])
    // a power binds closer than what is before it
    for (; rest[i + 2] === '**'; rest.splice(i + 2, 2)) next **= Number(rest[i + 3])
    if (rest[i] === '<<') value *= 2 ** next
    else if (rest[i] === '**') value **= next
    else if (rest[i] === '*') value *= next
    else if (rest[i] === '/') value /= next
    else if (rest[i] === '+') value += next
    else value -= next
  }
  return value
}

const UNITS = [
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
  [1, 'bytes']
] as const

/** A number with the unit that its name ends in. */
function withUnit(value: number, name: string): string {
  const plain = (of: number): string => of.toLocaleString('en-US', { maximumFractionDigits: 1 })
  if (/bytes/i.test(name)) {
    if (value % 1e9 === 0) return `${plain(value / 1e9)} GB`
    const [unit, word] = UNITS.find(([size]) => value >= size)!
    return `${plain(value / unit)} ${word}`
  }
  if (/mib/i.test(name)) return `${plain(value)} MiB`
  if (!/ms$/i.test(name)) return plain(value)
  if (value < 1000) return `${plain(value)} ms`
  return value > 120_000 && value % 60_000 === 0 ? `${plain(value / 60_000)} min` : `${plain(value / 1000)} s`
}

const fill = (text: string, constants: Constants): string =>
  text.replaceAll(/\{([^}|]+)(?:\|(\w+))?\}/g, (_, place: string, unit?: string) =>
    withUnit(constants.valueOf(place), unit ?? place)
  )

/** The table, by area. */
export function limitTable(
  constants: Constants,
  limits: Readonly<Record<string, readonly LimitRow[]>> = LIMITS
): string {
  const lines = Object.entries(limits).flatMap(([area, rows]) =>
    rows.map(({ what, limit, per, beyond, tests }) => {
      const files = tests.split(' ').map((test) => `\`${test.includes('.') ? test : `${test}.test`}.ts\``)
      const texts = [area, what, `${limit} (${per})`, beyond].map((cell) => fill(cell, constants))
      return `| ${[...texts, files.join(', ')].join(' | ')} |`
    })
  )
  return ['| Area | What | Limit (per) | When exceeded | Test |', '| --- | --- | --- | --- | --- |', ...lines].join(
    '\n'
  )
}

/** The page with its table regenerated. */
export function withLimitTable(page: string, constants: Constants): string {
  const [before, rest] = page.split(BEGIN)
  const after = rest?.split(END)[1]
  if (before === undefined || after === undefined) throw new Error(`docs/budgets.md lacks ${BEGIN} … ${END}`)
  return `${before}${BEGIN}\n\n${limitTable(constants)}\n\n${END}${after}`
}

if (import.meta.main) {
  const root = join(import.meta.dirname, '..')
  const path = join(root, 'docs/budgets.md')
  writeFileSync(path, withLimitTable(readFileSync(path, 'utf8'), new Constants(root)))
}
