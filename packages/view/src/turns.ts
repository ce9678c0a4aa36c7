const waiting = new Map<string, Promise<unknown>>()

/** Runs what is asked for one place one after the other, within this process. Between processes, renames decide. */
export async function inTurn<T>(place: string, work: () => Promise<T>): Promise<T> {
  const before = waiting.get(place) ?? Promise.resolve()
  const turn = before.then(work, work)
  waiting.set(place, turn)
  try {
    return await turn
  } finally {
    if (waiting.get(place) === turn) waiting.delete(place)
  }
}
