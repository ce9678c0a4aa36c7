import { KeyedLock } from '@svc/internal-concurrency'

const places = new KeyedLock()

/** Runs what is asked for one place one after the other, within this process. Between processes, renames decide. */
export const inTurn = <T>(place: string, work: () => Promise<T>): Promise<T> => places.run(place, undefined, work)
