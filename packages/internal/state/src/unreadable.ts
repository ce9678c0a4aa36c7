import type { StoreState } from './state.ts'
import type { UnreadableStateError } from './strict.ts'
import type { Views } from './views.ts'

export interface StateParts extends Pick<StoreState, 'repos' | 'artifacts'> {
  readonly views: Pick<Views, 'records'>
}

/** The records below `state/` that cannot be read; the others are skipped (spec disk.19). */
export async function unreadableRecords({ repos, artifacts, views }: StateParts): Promise<UnreadableStateError[]> {
  const unreadable: UnreadableStateError[] = []
  const note = (error: UnreadableStateError): void => void unreadable.push(error)
  for (const records of [repos.list(note), artifacts.list(note, { cached: true }), views.records(note)])
    for await (const _ of records);
  return unreadable
}
