type TableCells = readonly string[]

const GAP = '  '
/** Of what follows the first cell of a row that gets a line for itself. */
const INDENT = '    '

/**
 * Rows as left-aligned columns, without trailing blanks. On a terminal of so many columns cells break between words; a long
 * name gets a line for itself; and where not even this fits, each row goes on below its first cell. No word is cut: names are
 * typed again.
 */
export function formatTable(rows: readonly TableCells[], columns = Number.POSITIVE_INFINITY): string[] {
  const natural = widthsOf(rows, lengthOf)
  if (totalOf(natural) <= columns) return rows.map((row) => lineOf(row, natural))
  const parted = rows.flatMap((row) =>
    lengthOf(row[0] ?? '') > columns / 2 ? [[row[0]!], ['', ...row.slice(1)]] : [row]
  )
  const candidates = [rows, parted].map((each) => inColumns(each, columns))
  return candidates.find((lines) => lines !== undefined) ?? rows.flatMap((row) => below(row, columns))
}

/** A row of one cell takes the whole width. Undefined where words do not fit side by side. */
function inColumns(rows: readonly TableCells[], columns: number): string[] | undefined {
  const aligned = rows.filter(({ length }) => length > 1)
  const least = widthsOf(aligned, leastOf)
  if (totalOf(least) > columns) return undefined
  const widths = fitted(widthsOf(aligned, lengthOf), least, columns)
  return rows.flatMap((row) => {
    if (row.length === 1) return wrapped(row[0]!, columns)
    const cells = row.map((cell, at) => wrapped(cell, widths[at]!))
    const height = Math.max(...cells.map(({ length }) => length))
    return Array.from({ length: height }, (_, line) =>
      lineOf(
        cells.map((lines) => lines[line] ?? ''),
        widths
      )
    )
  })
}

/** Broken between words, with the indentation of the text; a longer word is left to the terminal. */
export function wrapped(text: string, columns: number): string[] {
  if (lengthOf(text) <= columns) return [text]
  const [indent = ''] = /^ */.exec(text) ?? []
  const lines: string[] = []
  let current: string | undefined
  for (const word of wordsOf(text)) {
    const next: string = (current ?? '') + word
    if (current === undefined || lengthOf(next) <= columns) current = next
    else {
      lines.push(current)
      current = indent + word.trimStart()
    }
  }
  return [...lines, current ?? indent]
}

/** As many characters as columns, which is right for letters. */
const lengthOf = (text: string): number => Array.from(text).length

/** The width of the longest word, with the indentation of the cell. */
function leastOf(cell: string): number {
  const [indent = ''] = /^ */.exec(cell) ?? []
  return Math.max(0, ...wordsOf(cell).map((word) => indent.length + lengthOf(word.trimStart())))
}

/** Each with the blanks before it. */
const wordsOf = (text: string): string[] => text.match(/ *[^ ]+/g) ?? []

function widthsOf(rows: readonly TableCells[], widthOf: (cell: string) => number): number[] {
  const widths: number[] = []
  for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, widthOf(cell))))
  return widths
}

/** Empty columns on the right take nothing. */
function totalOf(widths: readonly number[]): number {
  const used = widths.slice(0, widths.findLastIndex((width) => width > 0) + 1)
  return used.reduce((sum, width) => sum + width, GAP.length * Math.max(0, used.length - 1))
}

/** The widest columns give first, and none more than its longest word allows. */
function fitted(natural: readonly number[], least: readonly number[], columns: number): number[] {
  const widths = [...natural]
  for (let over = totalOf(widths) - columns; over > 0; over--) {
    const spare = widths.map((width, at) => (width > least[at]! ? width : 0))
    widths[spare.indexOf(Math.max(...spare))]! -= 1
  }
  return widths
}

const lineOf = (row: TableCells, widths: readonly number[]): string =>
  row
    .map((cell, at) => cell + ' '.repeat(Math.max(0, widths[at]! - lengthOf(cell))))
    .join(GAP)
    .trimEnd()

function below([first = '', ...rest]: TableCells, columns: number): string[] {
  const indent = (/^ */.exec(first)?.[0] ?? '') + INDENT
  const cells = rest.filter((cell) => cell.trim() !== '').map((cell) => cell.trim())
  return [...wrapped(first, columns), ...(cells.length === 0 ? [] : wrapped(indent + cells.join(GAP), columns))]
}
