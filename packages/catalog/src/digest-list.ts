const LINE = /^([0-9a-f]{64}) {2}(\S.*)$/
const MAX_LINES = 100_000
/** Of one list: 100,000 lines of some forty characters. */
const MAX_CHARACTERS = 4 << 20

/**
 * The SHA-256 list in a provider's page: lines `<sha256>  <path>` in a JSON string property `manifest`, anywhere on the
 * page (spec cat.8). Undefined when there is none, or when two lists contradict each other.
 */
export function parseDigestList(page: string): ReadonlyMap<string, string> | undefined {
  const files = new Map<string, string>()
  for (const line of digestLines(page)) if (!note(files, line)) return undefined
  return files.size > 0 ? files : undefined
}

/** False if it contradicts the present value. */
function note(files: Map<string, string>, line: string): boolean {
  const match = LINE.exec(line.replace(/\r$/, ''))
  if (!match) return true
  const [, sha256, path] = match as unknown as [string, string, string]
  const before = files.get(path)
  files.set(path, sha256)
  return before === undefined || before === sha256
}

/** The lines of all lists. */
export function* digestLines(page: string): Iterable<string> {
  const key = /"manifest"\s{0,64}:\s{0,64}(?=")/g
  for (let found = key.exec(page); found; found = key.exec(page)) {
    const start = key.lastIndex
    let end = start + 1
    while (end < page.length && page[end] !== '"') end += page[end] === '\\' ? 2 : 1
    if (end >= page.length) return
    if (end - start <= MAX_CHARACTERS) yield* tryParseString(page.slice(start, end + 1))?.split('\n', MAX_LINES) ?? []
    key.lastIndex = end + 1
  }
}

function tryParseString(json: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'string' ? value : undefined
  } catch {
    // not a JSON string: the next one may be.
    return undefined
  }
}
