/** Enough for a warning. */
const MAX_NAMES = 100

const leadsOut = (name: string): boolean =>
  /^[/\\~]|^[A-Za-z][\w+.-]*:/.test(name) || name.split(/[/\\]/).includes('..')

/** The files outside the model that a list of shards names; at most 100 of them, and none if it is no such list. */
export function outsideNamesIn(bytes: Uint8Array): readonly string[] {
  try {
    const map: unknown = JSON.parse(Buffer.from(bytes).toString('utf8'))?.weight_map
    return [...new Set(Object.values(map ?? {}))]
      .filter((name) => typeof name === 'string' && leadsOut(name))
      .slice(0, MAX_NAMES)
  } catch {
    return []
  }
}
