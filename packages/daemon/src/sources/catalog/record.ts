const LINE = /^([0-9a-f]{64}) {2}(\S.*)$/
const MAX_LINES = 100_000

/**
 * The SHA-256 list in a provider's page: lines `<sha256>  <path>` in a JSON string property `manifest`, anywhere on the
 * page (spec cat.8). Undefined when there is none, or when two lists contradict each other.
 */
export function parseRecord(page: string): ReadonlyMap<string, string> | undefined {
  const files = new Map<string, string>()
  for (const text of manifestStrings(page)) {
    for (const line of text.split('\n').slice(0, MAX_LINES)) {
      const match = LINE.exec(line.replace(/\r$/, ''))
      if (!match) continue
      const [, sha256, path] = match as unknown as [string, string, string]
      const before = files.get(path)
      if (before !== undefined && before !== sha256) return undefined
      files.set(path, sha256)
    }
  }
  return files.size > 0 ? files : undefined
}

function* manifestStrings(page: string): Iterable<string> {
  const key = /"manifest"\s*:\s*(?=")/g
  for (let found = key.exec(page); found; found = key.exec(page)) {
    const start = key.lastIndex
    let end = start + 1
    while (end < page.length && page[end] !== '"') end += page[end] === '\\' ? 2 : 1
    if (end >= page.length) return
    try {
      const value: unknown = JSON.parse(page.slice(start, end + 1))
      if (typeof value === 'string') yield value
    } catch {
      // Not a JSON string: try the next one.
    }
    key.lastIndex = end + 1
  }
}
