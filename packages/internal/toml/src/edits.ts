/** A key of a section, as it is to be written. */
export interface KeyLine {
  readonly section: string
  readonly key: string
  /** `key = value` */
  readonly text: string
}

/**
 * The ways to set a key, the tidiest first. Lines alone do not tell which of them mean it, as within a string of several
 * lines: parse each, and take the first that says what it should.
 */
export function* keyEdits(text: string, { section, key, text: line }: KeyLine): Generator<string> {
  // lines that end with CRLF keep their carriage return
  const lines = text.split('\n')
  const replaced = (at: number, by: string): string => {
    const [, comment = '', end = ''] = BEHIND.exec(lines[at]!) ?? []
    return lines.toSpliced(at, 1, by + comment + end).join('\n')
  }
  const header = lines.findIndex((each) => new RegExp(`^\\s*\\[\\s*${section}\\s*\\]\\s*(#.*)?\\r?$`).test(each))
  if (header >= 0) {
    const end = lines.findIndex((each, at) => at > header && /^\s*\[/.test(each))
    const inside = lines.slice(0, end < 0 ? lines.length : end)
    const at = inside.findIndex((each, i) => i > header && new RegExp(`^\\s*${key}\\s*=`).test(each))
    const added = line + (lines[header]!.endsWith('\r') ? '\r' : '')
    yield at < 0 ? lines.toSpliced(header + 1, 0, added).join('\n') : replaced(at, line)
  }
  const dotted = lines.findIndex((each) => new RegExp(`^\\s*${section}\\s*\\.\\s*${key}\\s*=`).test(each))
  if (dotted >= 0) yield replaced(dotted, `${section}.${line}`)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const gap = text === '' || text.endsWith(eol + eol) ? '' : text.endsWith('\n') ? eol : eol + eol
  yield `${text}${gap}[${section}]${eol}${line}${eol}`
}

/** A one-line value's trailing comment, with the blanks before it and the line ending. */
const BEHIND = /^(?:[^=]*=\s*(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s#"']+)(\s*#[^\r]*))?.*?(\r?)$/

/** The text without the tables `[[name]]` at some positions, and with another one at its end. Parse it, as for a key. */
export function tableEdit(
  text: string,
  name: string,
  removed: readonly number[],
  added: Readonly<Record<string, unknown>> | undefined
): string {
  const without = withoutTables(text, name, removed)
  if (added === undefined) return without
  const lines = Object.entries(added).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  const gap = without === '' || without.endsWith('\n\n') ? '' : without.endsWith('\n') ? '\n' : '\n\n'
  return `${without}${gap}[[${name}]]\n${lines.join('\n')}\n`
}

function withoutTables(text: string, name: string, positions: readonly number[]): string {
  const head = new RegExp(`^\\s*\\[\\[\\s*${name}\\s*\\]\\]`)
  const kept: string[] = []
  let position = -1
  let isInTable = false
  for (const line of text.split('\n')) {
    if (/^\s*\[/.test(line)) {
      isInTable = head.test(line)
      if (isInTable) position++
    }
    if (!isInTable || !positions.includes(position)) kept.push(line)
  }
  return kept.join('\n')
}
